(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const lang = () => document.querySelector('input[name="lang"]:checked').value;
  const remembered = {
    get(key) { try { return localStorage.getItem("advisor." + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("advisor." + key, value); } catch { /* a file may not be allowed to */ } },
  };

  // --- language and theme -----------------------------------------------------------------------------------------
  const applyLanguage = () => { root.dataset.lang = lang(); root.lang = lang() === "zh" ? "zh-CN" : "en"; };
  for (const name of ["lang", "theme"]) {
    const kept = document.getElementById(`${name}-${remembered.get(name)}`);
    if (kept) kept.checked = true;
    for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
      input.addEventListener("change", () => { remembered.set(name, input.value); applyLanguage(); redraw(); });
    }
  }
  applyLanguage();

  // --- folding, copying, filtering --------------------------------------------------------------------------------
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
  let folded = [];
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; folded.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { folded.forEach((d) => { d.open = false; }); });

  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return; } catch { /* not allowed: the old way */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      await copy(button.parentElement.querySelector("code").textContent);
      const before = [...button.childNodes];
      button.textContent = lang() === "zh" ? "已复制" : "Copied";
      button.dataset.copied = "yes";
      setTimeout(() => { button.replaceChildren(...before); delete button.dataset.copied; }, 1500);
    });
  }
  const filter = document.getElementById("filter");
  if (filter) filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const card of document.querySelectorAll("article.finding")) card.hidden = !card.textContent.toLowerCase().includes(wanted);
  });

  // --- pictures ---------------------------------------------------------------------------------------------------
  const specs = JSON.parse(document.getElementById("figures-data").textContent);
  const color = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const palette = ["accent", "exposed_communication", "computing", "bubble", "preparing", "other", "idle", "high"];
  const say = (text) => (typeof text === "string" ? text : text[lang()]);
  const short = (text) => (text.length > 22 ? text.slice(0, 14) + "…" + text.slice(-7) : text);
  const number = (value) => (value === null ? "–" : Number(value.toPrecision(3)).toString());

  const contrast = (background) => {
    const [r, g, b] = background.slice(1).match(/../g).map((part) => parseInt(part, 16));
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#10161d" : "#ffffff";
  };

  const axis = (title, more = {}) => ({
    grid: { color: color("line") }, ticks: { color: color("soft"), ...(more.ticks || {}) }, border: { color: color("line") },
    title: { display: Boolean(title), text: title, color: color("soft") }, ...more.scale,
  });
  const labelled = (spec) => axis(say(spec.x), {
    ticks: { maxRotation: 60, autoSkip: true, callback(value, index) { return (spec.marked.includes(index) ? "▲" : "") + short(spec.names ? say(spec.names[index]) : spec.labels[index] ?? ""); } },
  });
  const barred = (spec, stacked) => ({
    type: "bar",
    data: {
      labels: spec.names ? spec.names.map(say) : spec.labels,
      datasets: spec.series.map((series) => ({
        label: say(series.name), data: series.values, backgroundColor: color(series.color) || color("other"), maxBarThickness: 46,
        borderColor: color("mark"),
        borderWidth: series.values.map((_, index) => (!stacked && spec.marked.includes(index) ? 2 : 0)),
      })),
    },
    options: {
      scales: { x: { ...labelled(spec), stacked }, y: { ...axis(spec.unit), stacked, beginAtZero: true } },
      interaction: { mode: "index", intersect: false },
      plugins: { legend: { display: spec.series.length > 1 }, tooltip: { callbacks: {
        title: (items) => `${say(spec.x)} ${items[0].label}`,
        label: (item) => `${item.dataset.label}: ${number(item.raw)} ${spec.unit}`,
      } } },
    },
  });
  const forms = {
    stacked: (spec) => barred(spec, true),
    bars: (spec) => barred(spec, false),
    spans: (spec) => {
      const lanes = spec.series.map((series) => say(series.name) + (series.marks.length ? "\n▲ " + series.marks.join(" ") : ""));
      return {
        type: "bar",
        data: { labels: lanes, datasets: spec.series.map((series, lane) => ({
          label: say(series.name), backgroundColor: color(series.color) || color("other"), grouped: false, barPercentage: 0.8, categoryPercentage: 0.9,
          data: series.spans.map((span) => ({ x: span, y: lanes[lane] })), minBarLength: 1,
        })) },
        options: {
          indexAxis: "y",
          scales: { x: axis(spec.unit, { scale: { min: 0, max: spec.end } }), y: axis("", { ticks: { color: color("ink"), callback: (_, index) => lanes[index].split("\n") } }) },
          plugins: { legend: { display: false }, tooltip: { callbacks: {
            title: () => "",
            label: (item) => `${item.dataset.label}: ${number(item.raw.x[1] - item.raw.x[0])} ${spec.unit} (${number(item.raw.x[0])} – ${number(item.raw.x[1])})`,
          } } },
        },
      };
    },
    lines: (spec) => ({
      type: "line",
      data: { datasets: spec.series.map((series, index) => {
        const stroke = color(palette[[...new Set(spec.series.map((s) => s.rank))].indexOf(series.rank) % palette.length]);
        return { label: say(series.name), data: series.points.map(([x, y]) => ({ x, y })), borderColor: stroke, backgroundColor: stroke, borderWidth: 1.6, pointRadius: 0, borderDash: series.dashed ? [5, 4] : [], order: index };
      }) },
      options: {
        parsing: false,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: { x: { type: "linear", ...axis(spec.x_unit) }, y: { ...axis(spec.unit), beginAtZero: true } },
        plugins: { tooltip: { callbacks: { title: (items) => `${number(items[0].parsed.x)} ${spec.x_unit}`, label: (item) => `${item.dataset.label}: ${number(item.parsed.y)} ${spec.unit}` } } },
      },
    }),
    matrix: (spec) => {
      const values = spec.cells.map((cell) => cell.v).sort((a, b) => a - b);
      const low = values[0], high = values[values.length - 1];
      const share = (value) => (high > low ? (value - low) / (high - low) : 1);
      const cell = (chart, count, side) => Math.max(2, (chart.chartArea || {})[side] / count - (count > 24 ? 0 : 2));
      return {
        type: "matrix",
        data: { datasets: [{
          data: spec.cells,
          backgroundColor: (context) => { const s = context.raw ? share(context.raw.v) : 0; return `color-mix(in srgb, ${color("accent")} ${Math.round(s * 85 + 8)}%, ${color("high")})`; },
          borderColor: (context) => (context.raw && context.raw.marked ? color("mark") : "transparent"),
          borderWidth: (context) => (context.raw && context.raw.marked ? 3 : 0),
          width: (context) => cell(context.chart, spec.xs.length, "width"),
          height: (context) => cell(context.chart, spec.ys.length, "height"),
        }] },
        options: {
          scales: {
            x: { type: "category", labels: spec.xs, offset: true, position: "top", ...axis(say(spec.x)), grid: { display: false } },
            y: { type: "category", labels: spec.ys, offset: true, reverse: false, ...axis(say(spec.y)), grid: { display: false } },
          },
          plugins: { legend: { display: false }, tooltip: { callbacks: { title: () => "", label: (item) => `${item.raw.y} → ${item.raw.x}: ${number(item.raw.v)} ${spec.unit}` } } },
        },
      };
    },
    treemap: (spec) => {
      const groups = [...new Set(spec.items.map((item) => item.group))];
      const of = (context) => (context.raw && context.raw._data ? spec.items[context.raw._data.index] || context.raw._data.children?.[0] : null);
      const fill = (item) => color(palette[Math.max(0, groups.indexOf(item?.group)) % palette.length]);
      return {
        type: "treemap",
        data: { datasets: [{
          tree: spec.items.map((item, index) => ({ ...item, index })), key: "value", spacing: 1, borderRadius: 3,
          backgroundColor: (context) => (of(context) ? fill(of(context)) : "transparent"),
          borderColor: (context) => (of(context)?.marked ? color("mark") : "transparent"),
          borderWidth: (context) => (of(context)?.marked ? 3 : 0),
          labels: { display: true, color: (context) => contrast(fill(of(context))), font: { size: 12 }, overflow: "fit", formatter: (context) => { const item = of(context); return item ? [short(item.name), item.share] : ""; } },
        }] },
        options: { plugins: { legend: { onClick: () => {}, labels: { boxWidth: 12, color: color("ink"), generateLabels: () => groups.map((group, index) => ({
          text: group || "–", fillStyle: color(palette[index % palette.length]), strokeStyle: "transparent", fontColor: color("ink"),
        })) } }, tooltip: { callbacks: {
          title: () => "",
          label: (context) => { const item = of(context); return item ? `${item.name} ${item.group}: ${number(item.value)} ${spec.unit} (${item.share})` : ""; },
        } } } },
      };
    },
  };

  let drawn = [];
  const draw = (canvas) => {
    const spec = specs[canvas.dataset.figure];
    const config = forms[spec.kind](spec);
    config.options = { responsive: true, maintainAspectRatio: false, animation: false, ...config.options };
    const plugins = config.options.plugins;
    plugins.legend = { labels: { color: color("ink"), boxWidth: 12 }, ...plugins.legend };
    drawn.push(new Chart(canvas, config));
    canvas.dataset.drawn = "yes";
  };
  const redraw = () => {
    if (!window.Chart) return;
    drawn.forEach((chart) => chart.destroy());
    drawn = [];
    for (const canvas of document.querySelectorAll("canvas[data-figure]")) draw(canvas);
  };
  redraw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
