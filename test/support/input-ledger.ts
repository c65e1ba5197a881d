import { ReportingSite } from "./reporting-site.ts";

/** Records input events with times and reports them to its server ten times a second. F8 blocks the page for 2 s. */
const page = `<!doctype html><title>Ledger</title><style>html,body{height:100%;margin:0}</style><script>
  let heard = [];
  const note = (event) => {
    const at = performance.timeOrigin + performance.now();
    const { type, key, clientX, clientY, touches } = event;
    const where = touches ? [...touches].map(({ clientX, clientY }) => clientX + "," + clientY).join(";") : clientX + "," + clientY;
    heard.push([at, type + " " + (key ?? where)]);
    if (type === "keydown" && key === "F8") for (const until = Date.now() + 2000; Date.now() < until; );
  };
  for (const type of ["mousemove", "mousedown", "mouseup", "keydown", "keyup", "wheel", "touchstart", "touchmove", "touchend"])
    addEventListener(type, note, { capture: true, passive: true });
  const tell = async () => {
    const body = JSON.stringify(heard.splice(0));
    if (body !== "[]") await fetch("/told", { method: "POST", body });
    setTimeout(tell, 100);
  };
  tell();
</script>`;

/** Event received by the page, with its time in milliseconds since the Unix epoch. */
export interface Received {
  readonly at: number;
  /** Type with the key or the position, such as `mousedown 10,20`. */
  readonly what: string;
}

/** Site whose page reports its input events with times. */
export class InputLedger extends ReportingSite {
  readonly received: Received[] = [];

  private constructor() {
    super(page);
  }

  static start(port = 0): Promise<InputLedger> {
    return new InputLedger().listen(port);
  }

  protected receive(told: string): void {
    for (const [at, what] of JSON.parse(told)) this.received.push({ at, what });
  }
}
