// Links to the sections.

function wireSections() {
  const links = [...document.querySelectorAll("nav a")];
  const go = (id) => $(id)?.scrollIntoView();
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const id = link.getAttribute("href").slice(1);
      set({ at: id === "summary" ? "" : id });
      go(id);
    });
  }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) {
        if (link.getAttribute("href") === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const link of links) { const target = $(link.getAttribute("href").slice(1)); if (target) seen.observe(target); }
  if (state.at) go(state.at);
}
