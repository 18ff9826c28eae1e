
"use strict";
// Filters and sorts the table of names. The page is complete without this.
(() => {
  const table = document.getElementById("names-table");
  const tools = document.getElementById("tools");
  const [find, state, actor] = ["find", "state", "actor"].map((id) => document.getElementById(id));
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: `${row.textContent} ${row.dataset.owner}`.toLowerCase() }));

  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    let matches = 0;
    for (const { row, text } of rows) {
      const fits = text.includes(wanted) && (!state.value || row.dataset.state === state.value) &&
        (!actor.value || row.dataset.actor.split(" ").includes(actor.value));
      row.hidden = !fits;
      matches += fits;
    }
    document.getElementById("count").textContent = `${matches} of ${rows.length}`;
  };

  const { compare } = new Intl.Collator("en", { numeric: true });
  const sort = (head) => {
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = ({ row }) => row.cells[head.cellIndex].textContent;
    rows.sort((a, b) => (ascending ? 1 : -1) * compare(key(a), key(b)));
    body.append(...rows.map(({ row }) => row));
  };

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
  }
  tools.addEventListener("input", filter);
  tools.hidden = false;
  filter();
})();
