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
      input.addEventListener("change", () => { remembered.set(name, input.value); applyLanguage(); });
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
      await copy((lang() === "zh" && button.dataset.copyZh) || button.dataset.copy || button.parentElement.querySelector("code").textContent);
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

  // --- tables ------------------------------------------------------------------------------------------------------
  const shown = (cell) => {
    const text = cell.querySelector(lang() === "zh" ? ".zh" : ".en");
    return (text || cell).textContent.trim().replaceAll("\u00a0", " ");
  };
  const units = { s: 1e6, ms: 1e3, us: 1, µs: 1, GB: 1e9, MB: 1e6, kB: 1e3, B: 1, "GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3, "B/s": 1, "%": 1, M: 1e6, k: 1e3, G: 1e9, T: 1e12, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12 };
  const valueOf = (text) => {
    const found = /^(?:[<>≈]\s*)?[−-]?([\d.]+)\s*([A-Za-zµ%/]*)/.exec(text);
    return found ? Number(found[1]) * (units[found[2]] || 1) * (/^[−-]/.test(text) ? -1 : 1) : null;
  };
  const compare = (a, b) => {
    const [x, y] = [valueOf(a), valueOf(b)];
    return x !== null && y !== null ? x - y : a.localeCompare(b);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [shown(row.cells[column]), row]);
        rows.sort(([a], [b]) => compare(a, b) * (down ? -1 : 1));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const field of document.querySelectorAll("[data-search]")) {
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of field.closest("details").querySelectorAll("tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  const quoted = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const inert = (text) => (/^[=+@\t\r-]/.test(text) && !/^-?[\d.]+( |$)/.test(text) ? "'" + text : text);
  for (const button of document.querySelectorAll("[data-csv]")) {
    button.addEventListener("click", () => {
      const rows = [...button.closest("details").querySelectorAll("tr")];
      const text = rows.map((row) => [...row.cells].map((cell) => quoted(inert(shown(cell).replace(/\u00a0/g, " ")))).join(",")).join("\r\n");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff" + text + "\r\n"], { type: "text/csv" }));
      link.download = button.dataset.csv + ".csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  // --- what if -----------------------------------------------------------------------------------------------------
  for (const box of document.querySelectorAll("[data-whatif]")) {
    const ticks = [...box.querySelectorAll("input[type=checkbox]")];
    const bar = box.querySelector("rect.left"), said = box.querySelector("output");
    const times = new Map([...box.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, [Number(row.dataset.share), row.cells[1]]]));
    const tell = () => {
      const key = ticks.filter((tick) => tick.checked).map((tick) => tick.value).join(",");
      const [share, cell] = times.get(key) || [null, null];
      if (share !== null) bar.setAttribute("width", String(1000 * share));
      said.replaceChildren(...(cell ? cell.cloneNode(true).childNodes : ["–"]));
    };
    ticks.forEach((tick) => tick.addEventListener("change", tell));
    tell();
  }
})();
