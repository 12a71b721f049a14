/** Joining and leaving, by the person's own hand: nothing is reported before. */

const element = (id) => document.getElementById(id);
const url = () => element("url").value.replace(/\/$/, "");

async function ask(request, done) {
  const answer = await chrome.runtime.sendMessage(request);
  element("said").textContent = answer.fault ?? done;
}

element("join").addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ kind: "join", url: url(), token: element("token").value }, "This browser takes part.");
});
element("leave").addEventListener("click", () => ask({ kind: "leave" }, "This browser has left."));
element("privacy").addEventListener("click", (event) => {
  event.preventDefault();
  window.open(`${url()}/privacy/reading`);
});
