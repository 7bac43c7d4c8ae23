/* What is wider than the page says that it scrolls. */
"use strict";
(() => {
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) =>
    target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1)));
  document.querySelectorAll(".scroll").forEach((one) => sizes.observe(one));
})();
