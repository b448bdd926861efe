/* What is too wide to be shown at once can be scrolled with the keyboard, too. */
const reachable = () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (region.scrollWidth > region.clientWidth) {
      region.tabIndex = 0;
    }
  }
};
window.addEventListener("load", reachable);
window.addEventListener("resize", reachable);
