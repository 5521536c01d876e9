// Runs before the page's modules, in any browser, and says why they do not start. Nothing is bundled into it, and no syntax is
// newer than the browsers that it has to tell so.
(() => {
  const say = (why) => {
    const shown = document.getElementById("starting");
    if (shown)
      shown.textContent = `This page did not start: ${why} The cairnlog command proves the log without a browser.`;
  };
  addEventListener(
    "error",
    (event) => {
      if (event.target === window)
        say(`this browser cannot run it (${event.message}). It takes a browser of 2022 or later.`);
      else if (event.target.localName === "script")
        say(
          "a part of it could not be loaded. The service may be restarting, or have a newer version: load the page again.",
        );
    },
    true,
  );
})();
