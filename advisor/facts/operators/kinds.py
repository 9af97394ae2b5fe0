"""What kind of operator it is: the vocabulary of operator types, cores and data types."""

from __future__ import annotations

import re
from functools import lru_cache

from advisor.sources.streams.kernels import Signature

CONVERSIONS = frozenset((
    "TransData", "Cast", "Transpose", "TransposeD", "FormatCast", "NPUFormatCast", "TransDataRNN", "FormatTransfer",
))  # fmt: skip
"""They change layout or data type and compute nothing (S10)."""

_CONVERSIONS = frozenset(kind.lower() for kind in CONVERSIONS)
_CUBE = re.compile(r"(?i:matmul|gemm)|^Mm$|Conv[23]?D|Conv2d|Conv3d|FullyConnection|GroupedMat")
_FUSED_EXCHANGE = re.compile(
    r"Mat_?mul\w*(All_?Reduce|Reduce_?Scatter|All_?To_?All)|(All_?Gather|All_?To_?All)\w*Mat_?mul|"
    r"Moe\w*(Distribute|Dispatch|Combine)|Dispatch\w*Combine|Notify_?Dispatch|(Dispatch|Combine)_?Normal|"
    r"Fused_?Deep_?Moe|Mega_?Moe|"
    r"(?<!hcom_)(All_?(Reduce|Gather|To_?All)|Reduce_?Scatter)\w*_kernel",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"^super_?kernel$", re.IGNORECASE)
_ATTENTION = re.compile(
    r"FlashAttention|FusionAttention|FusedInferAttention|PromptFlash|IncreFlash|Paged_?Attention|Self_?Attention",
    re.IGNORECASE,
)
_OVER_CACHE = re.compile(r"Paged_?Attention|IncreFlash|FusedInferAttention|Multi_?Latent_?Attention", re.IGNORECASE)
_BATCHED = re.compile(r"Batch_?Mat_?Mul", re.IGNORECASE)
_SOFTMAX = re.compile(r"^(aclnn)?(Masked|Scaled|ScaledMasked)?Softmax(V\d+)?$", re.IGNORECASE)
_LOSS = re.compile(r"Log_?Softmax|Cross_?Entropy|NLL_?Loss", re.IGNORECASE)
_BESIDE = re.compile(r"^(aclnn)?(\w*Softmax(V\d+)?(Grad\w*)?|Drop_?Out\w*|(Inplace)?Masked_?Fill\w*)$", re.IGNORECASE)
_RANDOM = re.compile(
    r"^(aclnn)?(Inplace)?(Stateless)?(Drop_?Out_?Gen_?Mask|DSA_?Gen_?Bit_?Mask|Bernoulli|Random_?(Normal|Uniform|Choice)|Truncated_?Normal|"
    r"Multinomial|Normal_?(Tensor|Float)\w*)(V\d+|Int)?$",
    re.IGNORECASE,
)
ACTIVATIONS = {
    name: re.compile(rf"^(aclnn)?({types})(V\d+)?$", re.IGNORECASE)
    for name, types in (("silu", "SiLU|Swish"), ("gelu", "(Fast)?Gelu"), ("sigmoid", "Sigmoid"))
}
"""Activations that gate the other half of a projection, SwiGLU, GeGLU and GLU, and their types."""
_FUSED_GATE = re.compile(r"SwiGlu|GeGlu|ReGlu|SwigluQuant|GluJvp", re.IGNORECASE)
_HALVING = re.compile(r"^(aclnn)?(Split(V|D|VD|WithSize)?|Chunk|(Strided)?Slice(D|V\d+)?)$", re.IGNORECASE)
_REARRANGING = re.compile(
    r"^(aclnn)?((Strided)?Slice|Split|Chunk|Concat|Cat|Pack|Stack|Unpack|Unstack|Tile|Expand|BroadcastTo|Repeat|"
    r"RepeatInterleave|Pad|TensorMove|ViewCopy|AsStrided)(D|VD?|V\d+D?|WithSize)?$",
    re.IGNORECASE,
)
_TRANSPOSING = re.compile(r"^(aclnn)?(Transpose|Permute)(D|V\d+D?)?$", re.IGNORECASE)
_PRODUCT = re.compile(r"^(aclnn)?(Inplace)?Mul$", re.IGNORECASE)
_SQUARE = re.compile(r"^(aclnn)?(Square|Pows?)(V\d+)?$", re.IGNORECASE)
_NEGATION = re.compile(r"^(aclnn)?(Inplace)?Neg$", re.IGNORECASE)
_JOINING = re.compile(r"^(aclnn)?(Concat|Cat)(D|V\d+D?)?$", re.IGNORECASE)
_SUM = re.compile(r"^(aclnn)?(Inplace)?Add(V\d+)?$", re.IGNORECASE)
_MEAN = re.compile(r"^(aclnn)?(ReduceMean|Mean)(D|V\d+)?$", re.IGNORECASE)
_TOTAL = re.compile(r"^(aclnn)?ReduceSum(D|V\d+)?$", re.IGNORECASE)
_SCALING = re.compile(r"^(aclnn)?(Inplace)?Muls(V\d+)?$", re.IGNORECASE)
_ROOT = re.compile(r"^(aclnn)?Rsqrt(V\d+)?$", re.IGNORECASE)
_SHIFT = re.compile(r"^(aclnn)?Adds(V\d+)?$", re.IGNORECASE)
_SIZING = re.compile(r"^(aclnn)?(Non_?Zero\w*|Masked_?Select(V\d+)?|Unique\w*|Arg_?Where|Where)$", re.IGNORECASE)
_ROUTER = re.compile(r"^(aclnn)?(Top_?K|Moe_?Gating)\w*$", re.IGNORECASE)
_GROUPED = re.compile(r"Grouped_?Mat_?mul|GMM|Moe_?(FFN|Ffn|Expert)|Mega_?Moe|^(aclnn)?Ffn(V\d+)?$", re.IGNORECASE)
_ATTENTION_GRAD = re.compile(r"Attention\w*Grad", re.IGNORECASE)
_NO_ATTENTION = re.compile(r"CrossEntropy|Log_?Softmax|Gating|Moe|TopK", re.IGNORECASE)
_UPDATE = re.compile(
    r"^(Sparse)?Apply(?!Rotary|TopK|Penalt|Bias|Mask|Rope)[A-Z]|^Foreach|^Fused.*(Adam|SGD|Lamb|Lion)|Adam|Momentum|"
    r"Adagrad|Adadelta|RMSProp|Lamb(Next|Update|Apply)|Lars|^SGD|Ftrl|AdaFactor"
)
_FUSED_UPDATE = re.compile(r"Adam|Momentum|SGD|Lamb|Lion|Lars|Ftrl|Adagrad|RMSProp|Adadelta|AdaFactor")
_FETCH = re.compile(r"^(GetNext|InitData|EndOfSequence|DequeueOp|QueueDequeue|GetDynamicDims|.*IteratorGetNext)")
_FRAMEWORK_NAME = re.compile(
    r"^trans_|(^|/)trans_|TransData-op|_TransData_\d+$|(^|/)Cast-op\d+$.*|InsertCast|_autocast|^atomic_"
)
_CALL = re.compile(r"(aclnn[A-Za-z0-9]+)_")
_CONVERTS = re.compile(
    r"^aclnn(Inplace)?(Cast|Copy|ViewCopy|Contiguous|Permute|Transpose|Trans_?Data|(Npu)?FormatCast)(V\d+)?$",
    re.IGNORECASE,
)
_DRAWS = re.compile(
    r"^aclnn(Inplace)?(Random(Tensor)?|Rand_?perm|Normal((Tensor|Float)\w*)?|Uniform|Bernoulli(Tensor)?|Exponential|"
    r"Multinomial(Tensor)?|DropoutGenMask)(V\d+)?$",
    re.IGNORECASE,
)

_OWN = re.compile(r"_*(?!aclnn|hc(om|cl)|te_|trans_|atomic)[a-z]\w*|\w*(_kernel|(?i:_?custom))")
_RECURRENT = re.compile(r"RNN|LSTM|GRU|Recurrent")
_EXPERT = re.compile(r"Moe|GroupedMatmul", re.IGNORECASE)
_REDUCTION = re.compile(r"Reduce|Norm|Softmax|^Arg|TopK|Sort|^Cum|Loss|CrossEntropy")

AICPU_CORES = frozenset(("AI_CPU", "AICPU"))
DRAWING_CORES = frozenset(("DSA", "DSA_SQE"))
"""An engine of its own draws random numbers there."""
VECTOR_CORES = frozenset(("AI_VECTOR_CORE", "MIX_AIV", "VECTOR_CORE", "AIV"))
MIXED_CORES = frozenset(("MIX_AIC", "MIX_AIV"))
"""What chips alone have whose vector cores are cores of their own."""
CUBE_CORES = frozenset(("AI_CORE", "MIX_AIC", "AIC"))

SLOW_DTYPES = {
    "DOUBLE": "FLOAT", "FLOAT64": "FLOAT", "INT64": "INT32", "UINT64": "INT32", "UINT32": "INT32", "UINT16": "INT32",
    "INT16": "INT32", "COMPLEX64": "FLOAT pairs", "COMPLEX128": "FLOAT pairs", "STRING": "numbers",
}  # fmt: skip
"""Data types for which AI Core kernels are rare, so that an operator falls back to the AI CPU, and what to use."""

_BYTES = {
    "FLOAT": 4, "FLOAT32": 4, "FLOAT16": 2, "BF16": 2, "BFLOAT16": 2, "HALF": 2, "INT4": 1, "INT8": 1, "UINT8": 1,
    "BOOL": 1, "INT16": 2, "UINT16": 2, "INT32": 4, "UINT32": 4, "INT64": 8, "UINT64": 8, "DOUBLE": 8, "FLOAT64": 8,
    "COMPLEX64": 8, "COMPLEX128": 16, "HIFLOAT8": 1, "FLOAT8_E4M3FN": 1, "FLOAT8_E5M2": 1,
}  # fmt: skip


_ADDRESSES = 1 << 63


@lru_cache(maxsize=4096)
def dtypes(text: str) -> tuple[str, ...]:
    """`"DT_BF16;FLOAT"` is ("BF16", "FLOAT")."""
    return tuple(part.strip().upper().removeprefix("DT_") for part in text.split(";")) if text else ()


@lru_cache(maxsize=4096)
def shapes(text: str) -> tuple[tuple[int, ...], ...] | None:
    """`"32,64;64,128"` is ((32, 64), (64, 128)); an empty part is a scalar; None where it is no list of shapes:
    none has as many elements as a memory has addresses."""
    if not text:
        return None
    result = []
    for part in text.strip('"').split(";"):
        try:
            result.append(tuple(int(n) for n in part.split(",") if n.strip()))
        except ValueError:
            return None
    return tuple(result) if all(map(_fits, result)) else None


def _fits(shape: tuple[int, ...]) -> bool:
    return all(abs(size) < _ADDRESSES for size in (*shape, elements(shape)))


def is_conversion(kind: str) -> bool:
    """Whether the type only changes layout or data type."""
    return kind.lower() in _CONVERSIONS


@lru_cache(maxsize=4096)
def is_loss(kind: str) -> bool:
    """Whether the type is a loss over classes or words, a part of one, or its gradient."""
    return bool(_LOSS.search(kind))


@lru_cache(maxsize=4096)
def is_over_cache(kind: str) -> bool:
    """Whether the type is an attention over a cache of keys and values: how much it reads grows from step to step, and
    its shapes do not tell it."""
    return bool(_OVER_CACHE.search(kind))


def is_relayout(kind: str) -> bool:
    """Whether the type writes the same elements in another order: a conversion that is no cast."""
    return is_conversion(kind) and kind.lower() != "cast"


def is_fused_exchange(kind: str) -> bool:
    """Whether a kernel computes and communicates in one (MC2, expert dispatch): ranks wait for each other inside of it,
    so its time tells neither of the card nor of its shapes."""
    return bool(_FUSED_EXCHANGE.search(kind))


def holds_several(kind: str) -> bool:
    """Whether the graph compiler joined several operators into one launch: it is of no kind, and its counters are of
    all of them."""
    return bool(_SEVERAL.search(kind))


def is_cube(signature: Signature) -> bool:
    """Whether matrix multiplication is its work, attention excepted (it does vector work as well)."""
    if is_fused_exchange(signature.type):
        return False
    return is_matrix_product(signature.type) and signature.core not in VECTOR_CORES | AICPU_CORES


def is_matrix_product(kind: str) -> bool:
    """Whether the type's name says that it multiplies matrices or convolves."""
    return bool(_CUBE.search(kind))


def is_attention(kind: str) -> bool:
    """Whether the type is a fused attention."""
    return bool(_ATTENTION.search(kind))


def is_attention_gradient(kind: str) -> bool:
    """Whether the type is the backward pass of a fused attention."""
    return bool(_ATTENTION_GRAD.search(kind))


def is_sizing(kind: str) -> bool:
    """Whether how large its result is depends on values: the host must wait for it before it can go on."""
    return bool(_SIZING.search(kind))


def is_router(kind: str) -> bool:
    """Whether the type picks the largest values, as a layer of experts does for every token."""
    return bool(_ROUTER.search(kind))


def is_grouped_product(kind: str) -> bool:
    """Whether one kernel does the products of many experts."""
    return bool(_GROUPED.search(kind)) or is_fused_exchange(kind)


def is_batched_product(kind: str) -> bool:
    """Whether the type multiplies batches of matrices, as attention does with queries, keys and values."""
    return bool(_BATCHED.search(kind))


def is_softmax(kind: str) -> bool:
    """Whether the type is a forward softmax, which attention has one of between its two products."""
    return bool(_SOFTMAX.search(kind))


def is_between_products(kind: str) -> bool:
    """Whether a fused attention does the type's work on the way: mask, softmax and dropout, forward and backward."""
    return bool(_BESIDE.search(kind)) and not _NO_ATTENTION.search(kind)


def is_recurrent(kind: str) -> bool:
    """Whether the type computes one time step after the other, each from the one before."""
    return _RECURRENT.search(kind) is not None


def is_own(kind: str) -> bool:
    """Whether the name is none of CANN's operators, which are all written like MatMulV2: somebody wrote this kernel
    himself, in AscendC or Triton."""
    return _OWN.fullmatch(kind) is not None


def is_random(kind: str) -> bool:
    """Whether the type draws random numbers: masks of dropout, noise, samples."""
    return bool(_RANDOM.search(kind))


def activation(kind: str) -> str:
    """The activation that the type computes, of those that gate; empty where it is none."""
    return next((name for name, types in ACTIVATIONS.items() if types.search(kind)), "")


def is_fused_gate(kind: str) -> bool:
    """Whether one kernel of the type halves, activates and multiplies."""
    return bool(_FUSED_GATE.search(kind))


def is_halving(kind: str) -> bool:
    """Whether the type cuts a tensor into parts."""
    return bool(_HALVING.search(kind))


def is_rearranging(kind: str) -> bool:
    """Whether the type computes nothing: it cuts tensors, joins them, repeats them or moves them."""
    return bool(_REARRANGING.search(kind))


def is_transposing(kind: str) -> bool:
    """Whether the type swaps dimensions: a conversion of layouts, and beside cuts and joins one more way to move."""
    return bool(_TRANSPOSING.search(kind))


def is_product(kind: str) -> bool:
    """Whether the type multiplies two tensors element by element; Muls, by a number, gates and normalises nothing."""
    return bool(_PRODUCT.search(kind))


def is_square(kind: str) -> bool:
    """Whether the type squares element by element, or raises to another power."""
    return bool(_SQUARE.search(kind))


def is_negation(kind: str) -> bool:
    """Whether the type changes the sign element by element."""
    return bool(_NEGATION.search(kind))


def is_joining(kind: str) -> bool:
    """Whether the type joins tensors."""
    return bool(_JOINING.search(kind))


def is_sum(kind: str) -> bool:
    """Whether the type adds two tensors element by element."""
    return bool(_SUM.search(kind))


def is_mean(kind: str) -> bool:
    """Whether the type averages."""
    return bool(_MEAN.search(kind))


def is_total(kind: str) -> bool:
    """Whether the type sums up along a dimension."""
    return bool(_TOTAL.search(kind))


def is_scaling(kind: str) -> bool:
    """Whether the type multiplies a tensor with one number."""
    return bool(_SCALING.search(kind))


def is_root(kind: str) -> bool:
    """Whether the type takes reciprocal square roots, as normalisations do."""
    return bool(_ROOT.search(kind))


def is_shift(kind: str) -> bool:
    """Whether the type adds one number to a tensor."""
    return bool(_SHIFT.search(kind))


def is_update(kind: str) -> bool:
    """Whether the type belongs to the optimizer: fused updates and the Foreach kernels of unfused ones."""
    return bool(_UPDATE.search(kind))


def is_fused_update(kind: str) -> bool:
    """Whether one kernel of the type does the whole update."""
    return bool(_FUSED_UPDATE.search(kind))


def is_aicpu(signature: Signature) -> bool:
    """Whether it runs on the AI CPU though it computes: fetching data from the queue belongs there."""
    return signature.core.upper() in AICPU_CORES and not is_fetch(signature.type)


def is_fetch(kind: str) -> bool:
    """Whether the type serves the device's data queue: opens it, fetches a batch, sees its end."""
    return bool(_FETCH.match(kind))


def is_vector(signature: Signature) -> bool:
    """Whether it runs on vector cores."""
    return signature.core.upper() in VECTOR_CORES


def is_expert(kind: str) -> bool:
    """Whether the type sends tokens to experts, or multiplies those of several experts at once."""
    return bool(_EXPERT.search(kind))


def is_reduction(signature: Signature) -> bool:
    """Whether what it gives needs all of what it gets, by shapes or else by name: it can end a fused chain, and nothing
    that uses its result is fused with it."""
    given, taken = shapes(signature.output_shapes), shapes(signature.input_shapes)
    if given and taken and max(map(elements, given)) < max(map(elements, taken)):
        return True
    return bool(_REDUCTION.search(signature.type))


def inserted_by_framework(name: str) -> bool:
    """Whether a conversion's name says that the framework put it there; a user's cast carries the name of an API."""
    return bool(_FRAMEWORK_NAME.search(name))


def call_of(name: str) -> str:
    """The call of CANN's operator library that launched the kernel, by the kernel's name; empty where it tells none."""
    found = _CALL.match(name)
    return found[1] if found else ""


def asks_to_convert(call: str) -> bool:
    """Whether who makes this call of the library wants another layout or data type; others convert for themselves."""
    return bool(_CONVERTS.search(call))


def draws(call: str) -> bool:
    """Whether this call of the library draws random numbers. What draws them knows one data type, and casts them."""
    return bool(_DRAWS.search(call))


def elements(shape: tuple[int, ...]) -> int:
    """Number of elements; a scalar has one."""
    total = 1
    for size in shape:
        total *= size
    return total


def moved_bytes(signature: Signature) -> int:
    """Bytes of all inputs and outputs; 0 where shapes or types are not told."""
    total = 0
    for text, kinds in (
        (signature.input_shapes, signature.input_dtypes), (signature.output_shapes, signature.output_dtypes)
    ):  # fmt: skip
        for shape, kind in zip(shapes(text) or (), dtypes(kinds), strict=False):
            total += elements(shape) * _BYTES.get(kind, 0)
    return total


def rows(signature: Signature) -> tuple[tuple[int, int], ...]:
    """(elements, bytes an element) of the first two inputs' rows as they lie in memory; unknown types left out."""
    return _rows(signature.input_shapes, signature.input_dtypes, 2)


def result_rows(signature: Signature) -> tuple[tuple[int, int], ...]:
    """The same of the first output's."""
    return _rows(signature.output_shapes, signature.output_dtypes, 1)


def _rows(tensors: str, kinds: str, first: int) -> tuple[tuple[int, int], ...]:
    found = zip((shapes(tensors) or ())[:first], dtypes(kinds), strict=False)
    return tuple((shape[-1], _BYTES[kind]) for shape, kind in found if shape and kind in _BYTES)
