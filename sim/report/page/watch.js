// A page of `tcasim watch` asks a script beside it for the newest version, and reloads when there is one. A page from
// disk may load scripts, and no other files.

function watchBegin(watch) {
  window.tcasimNewest = version => {
    if (version !== watch.version) location.reload();
  };
  setInterval(() => {
    const asking = element("script", {src: `${watch.script}?${Date.now()}`});
    asking.onload = asking.onerror = () => asking.remove();
    document.head.append(asking);
  }, 1000);
}
if (results.watch) watchBegin(results.watch);
