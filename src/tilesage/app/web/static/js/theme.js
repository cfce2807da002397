// Runs before the first paint, so that a dark page never flashes white.
(() => {
  let kept = null;
  try { kept = localStorage.getItem("tilesage.theme"); } catch { /* private window */ }
  const dark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
