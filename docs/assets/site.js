/* What the theme leaves out for those who do not use a mouse, or do not see the page. */
const reachable = () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (region.scrollWidth > region.clientWidth) {
      region.tabIndex = 0;
    }
  }
};
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
window.addEventListener("load", reachable);
window.addEventListener("resize", reachable);
