// Lists the posts of this page that were read most. Anybody can count any id, so others are left out.
const section = document.getElementById("most-read");
const links = new Map(
  [...document.querySelectorAll("#posts a")].map((link) => [decodeURI(link.pathname), link]),
);
const address = new URL("/api/v1/views/top", document.querySelector('script[src$="/count.js"]').src);
address.search = new URLSearchParams({ prefix: `${location.hostname}/`, limit: 100 });

fetch(address)
  .then((response) => response.json())
  .then(({ top }) => {
    const paths = top.map(({ id }) => id.slice(location.hostname.length));
    for (const link of paths.map((path) => links.get(path)).filter(Boolean).slice(0, 5)) {
      const item = document.createElement("li");
      item.append(link.cloneNode(true));
      section.querySelector("ol").append(item);
      section.hidden = false;
    }
  })
  .catch(() => {}); // the page is whole without the list
