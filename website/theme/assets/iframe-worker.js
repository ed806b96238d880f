// Browsers refuse workers for pages opened from disk. There, search runs in a hidden frame instead:
// the frame has its own globals, and messages are passed by calling the other side's listeners.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      const page = this.frame.contentDocument
      inside.postMessage = data => this.told(data)
      inside.importScripts = (...urls) =>
        urls.reduce((done, next) => done.then(() => this.load(page, next)), Promise.resolve())
      this.load(page, url).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
    }

    load(page, url) {
      return new Promise((resolve, reject) => {
        const script = page.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = resolve
        script.onerror = reject
        page.body.appendChild(script)
      })
    }

    told(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    postMessage(data) {
      if (!this.ready) return void this.waiting.push(data)
      const inside = this.frame.contentWindow
      inside.dispatchEvent(new inside.MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
