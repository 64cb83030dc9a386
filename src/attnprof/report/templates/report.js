"use strict";
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  // --- charts ---
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = (width) => {
    const ink = dark.matches ? "#e8e8e8" : "#1a1a1a";
    const grid = dark.matches ? "#33373d" : "#e3e3e3";
    const axis = { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: ink, tickColor: ink, labelFontSize: 12, titleFontSize: 12 };
    return {
      background: null, view: { stroke: null }, axis,
      legend: { labelColor: ink, titleColor: ink, orient: "bottom", columns: width < 480 ? 2 : 4, labelLimit: width < 480 ? 130 : 220, labelFontSize: 12, layout: { bottom: { direction: "vertical", anchor: "start" } } },
      text: { fill: ink },
    };
  };
  const fitted = (spec) => ({ ...spec, title: undefined, width: "container", autosize: { type: "fit-x", contains: "padding" } });
  const figure = (chart, parent) => {
    const box = make("figure");
    box.dataset.chart = chart.name;
    box.setAttribute("aria-label", chart.title);
    box.append(make("h3", chart.title));
    const view = make("div", undefined, "view");
    if (chart.spec) {
      box.append(view, make("figcaption", chart.caption));
    } else {
      box.append(make("p", `n/a: ${chart.reason}`, "absent"));
    }
    parent.append(box);
    return [chart, view];
  };
  let drawing = 0;
  const draw = async (charts, parent) => {
    const mine = ++drawing;
    parent.replaceChildren();
    const ordered = [...charts.filter((chart) => chart.spec), ...charts.filter((chart) => !chart.spec)];
    const places = ordered.map((chart) => figure(chart, parent)).filter(([chart]) => chart.spec);
    for (const [chart, view] of places) {
      const options = { actions: { export: true, source: false, compiled: false, editor: false }, renderer: "svg", config: theme(view.clientWidth), downloadFileName: chart.name, tooltip: { theme: dark.matches ? "dark" : "light" } };
      await vegaEmbed(view, fitted(chart.spec), options);
    }
    document.body.dataset.drawn = String(mine);
  };
  const drawSeries = () => {
    const chosen = DATA.figures[Number(byId("series").value)];
    byId("left-out").textContent = chosen.left_out;
    return draw(chosen.charts, byId("figures"));
  };
  const drawAll = async () => {
    if (DATA.figures.length) await drawSeries();
    await draw(DATA.fixed, byId("fixed"));
    document.body.dataset.ready = "yes";
  };

  // --- table ---
  const COLUMNS = DATA.table;
  const PAGE = 50;
  const column = (name) => COLUMNS.find((each) => each.name === name);
  const total = COLUMNS[0].values.length;
  const raw = (each, row) => (each.texts && each.values[row] !== null ? each.texts[each.values[row]] : each.values[row]);
  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const plain = new Set(["batch", "q_heads", "kv_heads", "q_len", "kv_len", "head_dim", "v_dim"]);
  const whole = new Intl.NumberFormat("en");
  const shown = (value, name) => {
    if (value === null) return "n/a";
    if (typeof value !== "number") return value;
    if (plain.has(name)) return String(value);
    if (Number.isInteger(value)) return whole.format(value);
    return Math.abs(value) < 1e-3 ? value.toExponential(2) : digits.format(value);
  };
  const constant = (each) => total > 1 && each.name !== "variant" && each.values.every((value) => value === each.values[0]);
  const SHOWN = COLUMNS.filter((each) => !each.hidden && !constant(each));
  const same = COLUMNS.filter((each) => !each.hidden && constant(each)).map((each) => `${each.name} ${shown(raw(each, 0), each.name)}`);
  if (same.length) byId("same").textContent = `Same in every row: ${same.join(", ")}.`;
  const noteCell = (row) => {
    const cell = make("td", undefined, "notes");
    const note = raw(column("notes"), row);
    if (note === null) return cell;
    const details = make("details");
    details.append(make("summary", note), make("p", raw(column("details"), row)));
    cell.append(details);
    return cell;
  };
  let sorted = { name: null, up: true };
  let page = 0;
  let found = [];
  const haystack = (row) => COLUMNS.filter((each) => each.texts).map((each) => raw(each, row)).join("\n").toLowerCase();
  const texts = Array.from({ length: total }, (_, row) => haystack(row));
  const choices = { "by-variant": "variant", "by-outcome": "outcome", "by-length": "kv_len" };
  for (const [id, name] of Object.entries(choices)) {
    const each = column(name);
    const values = [...new Set(each.values.map((_, row) => raw(each, row)))];
    values.sort((a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b))));
    byId(id).append(new Option("all", ""), ...values.map((value, index) => new Option(String(value), String(index + 1))));
    byId(id).values = values;
    byId(id).addEventListener("change", refresh);
  }
  function keeps(row) {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.every((word) => texts[row].includes(word))) return false;
    return Object.entries(choices).every(([id, name]) => {
      const choice = byId(id).value;
      return choice === "" || raw(column(name), row) === byId(id).values[Number(choice) - 1];
    });
  }
  function refresh() {
    found = [];
    for (let row = 0; row < total; row += 1) if (keeps(row)) found.push(row);
    if (sorted.name !== null) {
      const { values } = column(sorted.name);
      const sign = sorted.up ? 1 : -1;
      found.sort((a, b) => {
        if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null);
        return sign * (values[a] - values[b]);
      });
    }
    page = 0;
    show();
  }
  function show() {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    const rows = found.slice(page * PAGE, (page + 1) * PAGE).map((row) => {
      const line = make("tr");
      if (["wrong", "nan"].includes(raw(column("check"), row))) line.className = "wrong";
      for (const each of SHOWN) {
        if (each.name === "notes") {
          line.append(noteCell(row));
          continue;
        }
        const value = raw(each, row);
        const kind = each.texts ? "" : "number";
        line.append(make("td", shown(value, each.name), value === null ? `${kind} missing` : kind));
      }
      return line;
    });
    document.querySelector("#table tbody").replaceChildren(...rows);
    byId("count").textContent = `${whole.format(found.length)} of ${whole.format(total)} rows`;
    byId("page").textContent = `page ${page + 1} of ${pages}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page + 1 >= pages;
  }
  const head = make("tr");
  for (const each of SHOWN) {
    const cell = make("th", undefined, each.texts ? "" : "number");
    cell.scope = "col";
    cell.setAttribute("aria-sort", "none");
    const button = make("button", each.name);
    button.type = "button";
    button.addEventListener("click", () => {
      sorted = { name: each.name, up: sorted.name === each.name ? !sorted.up : true };
      head.querySelectorAll("th").forEach((other) => other.setAttribute("aria-sort", "none"));
      cell.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      refresh();
    });
    cell.append(button);
    head.append(cell);
  }
  document.querySelector("#table thead").append(head);
  byId("search").addEventListener("input", refresh);
  byId("previous").addEventListener("click", () => { page -= 1; show(); });
  byId("next").addEventListener("click", () => { page += 1; show(); });
  refresh();

  if (DATA.figures.length) byId("series").addEventListener("change", drawSeries);
  dark.addEventListener("change", drawAll);
  drawAll();
})();
