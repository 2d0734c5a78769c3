// The page: the rows of all results first, then a comparison of two, then each result.

function pageMake() {
  results.results.forEach((result, i) => {
    result.anchor = `result-${i}`;
    const figure = result.figure || {};
    result.figure = {title: typeof figure.title === "string" ? figure.title : "", panels: list(figure.panels), points: list(figure.points), sweep: figure.sweep};
    const same = results.results.filter(one => one.name === result.name).length > 1;
    result.label = same ? result.directory : result.name;
  });
  document.getElementById("generator").textContent = results.generator;
  const main = document.getElementById("main"), contents = document.getElementById("contents"), rows = publishedSection(), compared = compareSection();
  if (rows) contents.append(element("a", {href: "#published"}, "Published rows"));
  if (compared) contents.append(element("a", {href: "#compare"}, "Two results compared"));
  contents.append(...results.results.map(result => element("a", {href: `#${result.anchor}`}, result.label)));
  main.replaceChildren(...[rows, compared, ...results.results.map(resultSection)].filter(section => section));
  document.documentElement.dataset.ready = "true";
}
pageMake();
