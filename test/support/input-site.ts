import { ReportingSite } from "./reporting-site.ts";

const page = `<!doctype html><title>Input</title><style>html,body{height:100%;margin:0}</style><input id=field autofocus>
<script>
  const tell = (event) => {
    const { type, key = "", button = 0, clientX = 0, clientY = 0 } = event;
    told = told.then(() => fetch("/told", { method: "POST", body: [type, key || button, clientX, clientY].join(" ") }));
  };
  let told = Promise.resolve();
  for (const type of ["mousedown", "mouseup", "wheel", "keydown", "keyup", "touchstart", "touchend", "compositionend"])
    addEventListener(type, tell, true);
  field.addEventListener("input", () => tell({ type: "value", key: JSON.stringify(field.value) }));
</script>`;

/** Site whose page reports all input events to its server in order. */
export class InputSite extends ReportingSite {
  /** `type key-or-button x y` of each event. */
  readonly told: string[] = [];

  private constructor() {
    super(page);
  }

  static start(port = 0): Promise<InputSite> {
    return new InputSite().listen(port);
  }

  protected receive(told: string): void {
    this.told.push(told);
  }
}
