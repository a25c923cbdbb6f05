// A browser lets no page that was opened as a file fetch another one: their texts are in
// page_texts.js, for the excerpts of Sphinx's search.
if (location.protocol === "file:") {
  window.fetch = (address) => Promise.resolve(new Response(PAGE_TEXTS[address]));
}
