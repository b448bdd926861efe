/* The search runs in a worker, which browsers refuse to pages that are opened as files. There, a
   frame that nobody sees takes its place. Elsewhere this does nothing. */
/* A hyphen at the end of a word, as while one types "coral-pytorch", is no query to the search. */
const tidied = (message) =>
  typeof message?.data === "string"
    ? { ...message, data: message.data.replace(/-+(?=[\s*~^]|$)/g, "") }
    : message;

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #waiting = [];

    constructor(address) {
      super();
      this.#frame.hidden = true;
      this.#frame.title = "search";
      document.documentElement.appendChild(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) =>
        addresses.reduce(
          (before, next) => before.then(() => this.#load(new URL(next, address))),
          Promise.resolve(),
        );
      this.#load(address).then(() => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    #load(address) {
      return new Promise((done, failed) => {
        const script = this.#frame.contentDocument.createElement("script");
        script.src = address;
        script.onload = done;
        script.onerror = failed;
        this.#frame.contentDocument.head.appendChild(script);
      });
    }

    postMessage(data) {
      if (this.#waiting !== null) {
        this.#waiting.push(data);
        return;
      }
      this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: tidied(data) }));
    }

    terminate() {
      this.#frame.remove();
    }
  };
} else {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    return post.call(this, tidied(message), ...rest);
  };
}
