"use strict";
// Filters while the user types, and follows runs that go on. Without it the forms do the same at the press of a button.
(() => {
  const list = document.getElementById("list");
  const filter = document.getElementById("filter");
  const picked = document.getElementById("picked");
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

  // Takes a new state of the list: rows that are the same stay, so that focus and choices stay too.
  function take(fresh) {
    const [old, now] = [list.querySelector("table.runs tbody"), fresh.querySelector("table.runs tbody")];
    list.dataset.live = fresh.dataset.live;
    if (!old || !now) {
      if (list.innerHTML !== fresh.innerHTML) list.replaceChildren(...fresh.childNodes);
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
    if (wanted.length !== old.rows.length || wanted.some((row, index) => row !== old.rows[index])) {
      const focused = document.activeElement;
      old.replaceChildren(...wanted);
      if (focused && focused !== document.activeElement && old.contains(focused)) focused.focus();
    }
    for (const box of boxes()) box.checked = chosen.has(box.value);
    const [said, news] = [document.getElementById("count"), fresh.querySelector("#count")];
    if (said && news && said.textContent !== news.textContent) said.textContent = news.textContent;
    count();
  }

  async function ask(address) {
    const number = ++asked;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok || number !== asked) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("list");
      if (fresh && number === asked) take(fresh);
      gone(false);
    } catch {
      gone(true);
    }
  }

  function gone(yes) {
    const note = document.getElementById("gone");
    if (note) note.hidden = !yes;
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
    list.addEventListener("change", count);
    window.addEventListener("pageshow", count);
    count();
    follow();
  }

  // What is wider than the page says that it scrolls.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
  });
  for (const one of document.querySelectorAll(".scroll")) sizes.observe(one);
})();
