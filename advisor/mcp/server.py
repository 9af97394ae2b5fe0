"""The tools on the official SDK, over standard input and output."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from advisor.basics.errors import AdvisorError, UsageError
from advisor.knowledge.words import word
from advisor.mcp import schemas
from advisor.mcp.pages import LONGEST_REFUSAL, cut, sendable, start_of, whole
from advisor.mcp.pending import Patient
from advisor.mcp.tools import SCHEME, Tools

if TYPE_CHECKING:
    from anyio import CapacityLimiter

log = logging.getLogger("advisor")

_RESOURCES_A_PAGE = 50


def serve(tools: Tools) -> None:
    """Answers on standard input and output until the client leaves. Raises UsageError without the extra."""
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise UsageError("mcp needs one more package", hint="pip install 'advisor[mcp]'") from None

    async def run() -> None:
        one_at_a_time = anyio.CapacityLimiter(1)
        server = build_server(tools, one_at_a_time)
        async with stdio_server() as (requests, answers):
            await server.run(Patient(requests, one_at_a_time), answers, server.create_initialization_options())

    anyio.run(run)


def build_server(tools: Tools, one_at_a_time: CapacityLimiter) -> Any:
    """The server, not yet connected to anything. Its tools work behind this limiter."""
    import anyio
    import jsonschema
    from mcp import MCPError
    from mcp import types as protocol
    from mcp.server.lowlevel import Server

    from advisor.exchange import tool_version

    inputs, outputs = schemas.inputs(), schemas.outputs()
    hints = protocol.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )

    async def list_tools(context: Any, asked: Any) -> Any:
        return protocol.ListToolsResult(
            tools=[
                protocol.Tool(
                    name=name, description=word("en", f"mcp.{name}"), input_schema=inputs[name],
                    output_schema=outputs[name], annotations=hints,
                )
                for name in inputs
            ]
        )  # fmt: skip

    async def call_tool(context: Any, asked: Any) -> Any:
        name, arguments = asked.name, asked.arguments or {}
        if name not in inputs:
            return refused(f"there is no tool {name!r}: {', '.join(inputs)}")
        try:
            jsonschema.validate(arguments, inputs[name])
            method = getattr(tools, name)
            answer = await anyio.to_thread.run_sync(lambda: method(**whole(arguments)), limiter=one_at_a_time)
        except jsonschema.ValidationError as error:
            return refused(f"{'.'.join(map(str, error.absolute_path)) or name}: {error.message}")
        except AdvisorError as error:
            return refused(str(error))
        except Exception as error:
            log.debug("tool %s", name, exc_info=True)
            return refused(f"a defect of the advisor itself: {type(error).__name__}: {error}")
        text = sendable(json.dumps(answer, ensure_ascii=False))
        return protocol.CallToolResult(
            content=[protocol.TextContent(type="text", text=text)], structured_content=json.loads(text)
        )

    def refused(reason: str) -> Any:
        told = protocol.TextContent(type="text", text=cut(sendable(reason), LONGEST_REFUSAL))
        return protocol.CallToolResult(content=[told], is_error=True)

    async def list_resources(context: Any, asked: Any) -> Any:
        known = tools.resources()
        start = start_of(getattr(asked, "cursor", None))
        if start is None:
            raise MCPError(code=protocol.INVALID_PARAMS, message="no such page")
        end = start + _RESOURCES_A_PAGE
        found = [
            protocol.Resource(uri=sendable(uri), name=sendable(name), mime_type=media)
            for uri, name, media in known[start:end]
        ]
        return protocol.ListResourcesResult(resources=found, next_cursor=str(end) if end < len(known) else None)

    async def list_templates(context: Any, asked: Any) -> Any:
        kinds = (("report/{+path}", "report"), ("statement/{id}", "statement"), ("remedy/{id}", "remedy"))
        return protocol.ListResourceTemplatesResult(
            resource_templates=[
                protocol.ResourceTemplate(
                    uri_template=SCHEME + template, name=name, description=word("en", f"mcp.resource_{name}")
                )
                for template, name in kinds
            ]
        )

    async def read_resource(context: Any, asked: Any) -> Any:
        from urllib.parse import unquote

        try:
            uri = unquote(str(asked.uri))
            text, media = await anyio.to_thread.run_sync(lambda: tools.resource(uri), limiter=one_at_a_time)
        except AdvisorError as error:
            raise MCPError(code=protocol.INVALID_PARAMS, message=cut(sendable(str(error)), LONGEST_REFUSAL)) from None
        return protocol.ReadResourceResult(
            contents=[protocol.TextResourceContents(uri=str(asked.uri), text=sendable(text), mime_type=media)]
        )

    return Server(
        "advisor", version=tool_version(), instructions=word("en", "mcp.instructions"),
        on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip
