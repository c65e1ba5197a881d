/** How much the service takes at once. */
const mostPasted = 262_144;

/** Milliseconds that the service may take to read a selection. */
const readWithin = 5_000;

export interface ClipboardParts {
  send(message: object): void;
  pushPaste(text: string): void;
  /** Tells the person why something did not work. */
  complain(why: string): void;
}

const overHttps = "Only over https can a page use the clipboard: ";

/** The clipboards of the viewer and of the page, one beside the other. */
export function createClipboard({ send, pushPaste, complain }: ClipboardParts) {
  /** The text that was asked for, and is yet to come. */
  let waiting: PromiseWithResolvers<string> | undefined;
  let timer: number | undefined;

  function giveUp(): void {
    waiting?.reject(new Error("the selection cannot be read"));
    waiting = undefined;
  }

  /** Asks for the selection of the page. */
  function read(): Promise<string> {
    giveUp();
    clearTimeout(timer);
    timer = window.setTimeout(giveUp, readWithin);
    waiting = Promise.withResolvers();
    send({ copy: {} });
    return waiting.promise;
  }

  return {
    /** Takes the link to the viewer's clipboard: the address bar has no more than half of it. */
    async share(link: string): Promise<void> {
      const written = navigator.clipboard?.writeText(link).then(
        () => "The link was copied: whoever opens it can do what you can.",
        () => "The browser does not let this page use the clipboard.",
      );
      complain((await written) ?? `${overHttps}the link was not copied.`);
    },

    /** Takes the selection of the page to the viewer's clipboard, which stays as it is when nothing is selected. */
    copy(): void {
      if (navigator.clipboard === undefined) {
        complain(`${overHttps}nothing was copied.`);
        return;
      }
      // A browser writes to its clipboard only what is begun while a key or a button is pressed: the text comes later.
      const blob = read().then((text) => {
        if (text === "") throw new Error("nothing is selected");
        return new Blob([text], { type: "text/plain" });
      });
      navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]).catch(() => undefined);
    },
    /** Pastes a text into the page. */
    paste(text: string): void {
      if (text.length > mostPasted)
        complain(`At most ${mostPasted.toLocaleString()} characters can be pasted at once.`);
      else if (text !== "") pushPaste(text);
    },
    /** Pastes what the viewer's clipboard has. */
    async pasteFromClipboard(): Promise<void> {
      if (navigator.clipboard === undefined) complain(`${overHttps}press Ctrl+V on the picture.`);
      else this.paste(await navigator.clipboard.readText().catch(() => ""));
    },
    /** Hears the selection. */
    hear(text: string): void {
      waiting?.resolve(text);
      waiting = undefined;
    },
    /** Hears that something was refused: it may have been this. */
    giveUp,
  };
}
