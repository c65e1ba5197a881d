/** Maximum characters of one paste. */
const maxPasted = 262_144;

/** Milliseconds to wait for a requested selection. */
const readWithin = 5_000;

export interface ClipboardParts {
  send(message: object): void;
  pushPaste(text: string): void;
  /** Shows the person a message. */
  showMessage(why: string): void;
}

const overHttps = "A page can use the clipboard only over https: ";

/** Transfers text between the viewer's clipboard and the session's page. */
export function createClipboard({ send, pushPaste, showMessage }: ClipboardParts) {
  /** The requested selection, until it arrives. */
  let waiting: PromiseWithResolvers<string> | undefined;
  let timer: number | undefined;

  function cancelRead(): void {
    waiting?.reject(new Error("failed to read the selection"));
    waiting = undefined;
  }

  /** Requests the selection of the session's page. Rejects if the selection does not arrive within 5 s. */
  function read(): Promise<string> {
    cancelRead();
    clearTimeout(timer);
    timer = window.setTimeout(cancelRead, readWithin);
    waiting = Promise.withResolvers();
    send({ copy: {} });
    return waiting.promise;
  }

  return {
    /** Copies the link to the viewer's clipboard. The URL in the address bar usually lacks the token. */
    async share(link: string): Promise<void> {
      const written = navigator.clipboard?.writeText(link).then(
        () => "The link was copied. Anyone with the link has the same access as you.",
        () => "The browser does not let this page use the clipboard.",
      );
      showMessage((await written) ?? `${overHttps}the link was not copied.`);
    },

    /**
     * Copies the selection of the session's page to the viewer's clipboard. An empty selection leaves the clipboard
     * unchanged.
     */
    copy(): void {
      if (navigator.clipboard === undefined) {
        showMessage(`${overHttps}nothing was copied.`);
        return;
      }
      // A browser only allows writes to the clipboard that start during a key press or click. The text arrives later.
      const blob = read().then((text) => {
        if (text === "") throw new Error("the selection is empty");
        return new Blob([text], { type: "text/plain" });
      });
      navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]).catch(() => undefined);
    },
    /** Pastes a text into the session's page. */
    paste(text: string): void {
      if (text.length > maxPasted)
        showMessage(`At most ${maxPasted.toLocaleString()} characters can be pasted at once.`);
      else if (text !== "") pushPaste(text);
    },
    /** Pastes the viewer's clipboard into the session's page. */
    async pasteFromClipboard(): Promise<void> {
      if (navigator.clipboard === undefined) showMessage(`${overHttps}press Ctrl+V on the picture.`);
      else this.paste(await navigator.clipboard.readText().catch(() => ""));
    },
    receive(text: string): void {
      waiting?.resolve(text);
      waiting = undefined;
    },
    /** Stops waiting for a selection. Call after a refusal, which may concern the requested selection. */
    cancelRead,
  };
}
