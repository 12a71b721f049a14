// Whoever has no mouse can scroll what is wider than the page.
addEventListener("load", () => {
  for (const one of document.querySelectorAll("pre, .table-wrapper")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  }
});
