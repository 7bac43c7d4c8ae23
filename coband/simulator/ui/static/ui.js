"use strict";
// Filters while the user types, and follows runs that go on. Without it the forms do the same at the press of a button.
(() => {
  const list = document.getElementById("list");
  const filter = document.getElementById("filter");
  const picked = document.getElementById("picked");
  const note = document.getElementById("gone");
  const NOBODY = note && note.textContent;
  const PAUSE = 250, LIVE = 2000, QUIET = 10000;
  const chosen = new Set();  // also those that a filter hides
  let typed, asked = 0;

  const boxes = () => [...document.querySelectorAll('#list input[name="id"]')];

  function count() {
    if (!picked) return;
    for (const box of boxes()) box.checked ? chosen.add(box.value) : chosen.delete(box.value);
    picked.textContent = `Chosen runs: ${chosen.size || "none"}`;
    for (const button of document.querySelectorAll(".actions button")) {
      button.disabled = button.getAttribute("formaction") === "/diff" ? chosen.size !== 2 : chosen.size === 0;
    }
  }

  const served = new WeakMap();  // parts of a page as they came; what is open or scrolled in them is the reader's
  const serve = (part) => { if (!served.has(part)) served.set(part, part.outerHTML); };

  // Puts other children into an element; of those that stay, the one with the focus keeps it.
  function put(element, wanted) {
    if (wanted.length === element.children.length && wanted.every((one, index) => one === element.children[index])) return;
    const focused = document.activeElement;
    element.replaceChildren(...wanted);
    if (focused && focused !== document.activeElement && element.contains(focused)) focused.focus();
    watch();
  }

  // Takes a new state of the list: rows, or parts, that are the same stay, so that focus and choices stay too.
  function take(fresh) {
    const [old, now] = [list.querySelector("table.runs tbody"), fresh.querySelector("table.runs tbody")];
    list.dataset.live = fresh.dataset.live;
    if (!old || !now) {
      const known = new Map([...list.children].map((part) => [served.get(part), part]));
      const wanted = [...fresh.children].map((part) => known.get(part.outerHTML) || part);
      wanted.forEach(serve);
      put(list, wanted);
      return;
    }
    const known = new Map([...old.rows].map((row) => [row.id, row]));
    const wanted = [...now.rows].map((row) => {
      const here = row.id && known.get(row.id);
      if (!here) return row;
      [...row.cells].forEach((cell, index) => {
        const own = here.cells[index];
        if (!cell.classList.contains("choose") && own.innerHTML !== cell.innerHTML) own.replaceChildren(...cell.childNodes);
      });
      return here;
    });
    put(old, wanted);
    for (const box of boxes()) box.checked = chosen.has(box.value);
    const [said, news] = [document.getElementById("count"), fresh.querySelector("#count")];
    if (said && news && said.textContent !== news.textContent) said.textContent = news.textContent;
    count();
  }

  async function ask(address) {
    const number = ++asked;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (number !== asked) return;
      if (answer.ok) take(page.getElementById("list"));
      gone(answer.ok ? "" : (page.querySelector("main > .remark:not(#gone)") || page.body).textContent);
    } catch {
      gone(NOBODY);
    }
  }

  // Says why what is shown is what was there last; nothing where it is new.
  function gone(why) {
    if (!note) return;
    note.hidden = !why;
    if (why) note.textContent = why;
  }

  // Asks again and again: often while something goes on, now and then for runs that have begun since.
  function follow() {
    setTimeout(async () => {
      if (!document.hidden) await ask(location.href);
      follow();
    }, list.dataset.live === "1" ? LIVE : QUIET);
  }

  if (filter) {
    const go = () => {
      const words = [...new FormData(filter)].filter(([, value]) => value);
      const address = `/${words.length ? `?${new URLSearchParams(words)}` : ""}`;
      history.replaceState(null, "", address);
      ask(address);
    };
    for (const name of ["input", "change"]) {
      filter.addEventListener(name, () => { clearTimeout(typed); typed = setTimeout(go, PAUSE); });
    }
    filter.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typed); go(); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.target.closest("input, select, textarea")) {
        event.preventDefault();
        filter.elements.words.focus();
      }
    });
  }
  const form = document.getElementById("chosen");
  if (form) {
    form.addEventListener("formdata", (event) => {
      event.formData.delete("id");
      for (const id of chosen) event.formData.append("id", id);
    });
  }
  if (list) {
    [...list.children].forEach(serve);
    list.addEventListener("change", count);
    window.addEventListener("pageshow", count);
    count();
    follow();
  }

  // What is wider than the page says that it scrolls.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
  });
  const watch = () => document.querySelectorAll(".scroll").forEach((one) => sizes.observe(one));
  watch();
})();
