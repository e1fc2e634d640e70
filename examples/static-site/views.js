// Counts each load of the page once, and shows the number of views before it.
const views = document.querySelector("#views");

async function count() {
  const response = await fetch(views.dataset.url, { method: "POST", keepalive: true });
  const { message, error } = await response.json();
  views.textContent = message ?? error.message;
}

if (document.prerendering) document.addEventListener("prerenderingchange", count, { once: true });
else count();
