/* The values of curves under the pointer, and on the keyboard under a cursor. */
"use strict";
(() => {
  const NAMESPACE = "http://www.w3.org/2000/svg", MOST = 14, DETAILED = 6;
  const box = document.createElement("div");
  box.className = "values-box";
  box.hidden = true;
  box.setAttribute("role", "status");
  document.body.append(box);
  const short = (value) => typeof value !== "number" ? value : Math.abs(value) >= 1e5 ? value.toExponential(2) :
    value.toLocaleString("en", { maximumSignificantDigits: 4 });

  /* The last point of a curve at or before a place: curves are step functions. Separate points: the nearest. */
  function pointOf(curve, at, stepwise) {
    let best = -1;
    for (let i = 0; i < curve.at.length; i++) {
      if (stepwise ? curve.at[i] <= at + 0.5 : best < 0 || Math.abs(curve.at[i] - at) < Math.abs(curve.at[best] - at)) best = i;
    }
    return best;
  }

  function rowsOf(panel, at, level) {
    const found = panel.curves.map((curve) => ({ curve, i: pointOf(curve, at, curve.at.length > 8) }));
    const separate = panel.curves.every((curve) => curve.at.length === 1);
    const shown = found.filter(({ curve, i }) => i >= 0 && (separate ?
      Math.hypot(curve.at[0] - at, curve.level[0] - level) < 24 :
      curve.at.length === 1 || at <= curve.at[curve.at.length - 1] + 6));
    return shown.sort((a, b) => a.curve.level[a.i] - b.curve.level[b.i]);
  }

  function line(text, colour) {
    const element = document.createElement("div");
    if (colour) {
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = colour;
      element.append(swatch, " ");
    }
    element.append(text);
    return element;
  }

  function fill(panel, found) {
    const { curve, i } = found.find((one) => one.curve.at.length > 1) || found[0];
    const lines = found.slice(0, MOST).map(({ curve, i }) => {
      const range = curve.low && found.length <= DETAILED ? ` (${short(curve.low[i])} to ${short(curve.high[i])})` : "";
      return line(`${curve.label}: ${short(curve.value[i])}${range}`, curve.colour);
    });
    const more = found.length > MOST ? [line(`and ${found.length - MOST} more`)] : [];
    box.replaceChildren(line(`${panel.x || "at"} ${short(curve.x[i])}`), ...lines, ...more);
  }

  function place(clientX, clientY) {
    box.hidden = false;
    const width = box.offsetWidth, tall = box.offsetHeight;
    box.style.left = `${Math.max(4, clientX + 14 + width > innerWidth - 8 ? clientX - width - 14 : clientX + 14)}px`;
    box.style.top = `${Math.max(4, Math.min(clientY + 12, innerHeight - tall - 8))}px`;
  }

  function attach(svg, panels) {
    const cursor = document.createElementNS(NAMESPACE, "line");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
    svg.tabIndex = 0;
    let current = null;
    const hide = () => { box.hidden = true; cursor.style.display = "none"; };
    const scale = () => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;

    function show(panel, at, level) {
      const found = rowsOf(panel, at, level);
      if (!found.length) return hide();
      const { curve, i } = found.find((one) => one.curve.at.length > 1) || found[0], here = curve.at.length > 8 ? at : curve.at[i];
      cursor.setAttribute("x1", here); cursor.setAttribute("x2", here);
      cursor.setAttribute("y1", panel.box[1]); cursor.setAttribute("y2", panel.box[3]);
      cursor.style.display = "";
      current = { panel, at };
      fill(panel, found);
      const bounds = svg.getBoundingClientRect(), size = scale();
      place(bounds.left + here * size, bounds.top + (level < 0 ? panel.box[1] : level) * size);
    }

    const follow = (event) => {
      const bounds = svg.getBoundingClientRect(), size = scale();
      const at = (event.clientX - bounds.left) / size, level = (event.clientY - bounds.top) / size;
      const panel = panels.find(({ box: [left, top, right, bottom] }) =>
        at >= left - 4 && at <= right + 4 && level >= top - 4 && level <= bottom + 4);
      if (panel) show(panel, at, level); else hide();
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (!current) current = { panel: panels[0], at: panels[0].box[0] };
      const { panel, at } = current, places = panel.curves.flatMap((curve) => curve.at).sort((a, b) => a - b);
      const next = step > 0 ? places.find((one) => one > at + 0.5) : places.filter((one) => one < at - 0.5).pop();
      if (next !== undefined) return show(panel, next, panel.curves[0].level[0]);
      const other = panels[panels.indexOf(panel) + step];
      if (other) show(other, step > 0 ? other.box[0] : other.box[2], other.curves[0].level[0]);
    });
  }

  /* A panel where it stands on a narrow screen. */
  function moved({ move: [right, down], box, curves, ...panel }) {
    return { ...panel, box: box.map((side, i) => side + (i % 2 ? down : right)), curves: curves.map((curve) => (
      { ...curve, at: curve.at.map((one) => one + right), level: curve.level.map((one) => one + down) })) };
  }

  document.querySelectorAll("figure").forEach((figure) => {
    const source = figure.querySelector("script.values");
    if (!source) return;
    const panels = JSON.parse(source.textContent), narrow = figure.querySelector("svg.narrow");
    attach(figure.querySelector("svg"), panels);
    if (narrow) attach(narrow, panels.map(moved));
  });
})();
