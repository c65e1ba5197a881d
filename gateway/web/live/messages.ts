/** A page of the session. */
export interface Tab {
  readonly id: string;
  readonly url: string;
  readonly title?: string;
  readonly active?: boolean;
  readonly crashed?: boolean;
}

/** How the session is. */
export interface State {
  readonly status: string;
  readonly pause_reason?: string;
  readonly control: { readonly state: string; readonly holder_client_id?: string };
  readonly control_changed_at?: string;
  readonly pages?: readonly Tab[];
  readonly questions?: readonly Question[];
  readonly downloads?: readonly Download[];
}

/** What a page has downloaded while the person steered who does. */
export interface Download {
  readonly id: string;
  readonly file_name: string;
  /** A number of 64 bits is a text. */
  readonly bytes?: string | number;
  readonly status: string;
}

/** What a page asks of the person who steers. */
export interface Question {
  readonly id: string;
  readonly page_id: string;
  readonly kind: string;
  readonly message?: string;
  readonly default_text?: string;
  /** Of a file chooser: it takes more files than one, and files of these types. */
  readonly multiple?: boolean;
  readonly accept?: string;
  /** What a list has to choose from. */
  readonly options?: readonly Choice[];
}

/** An option of a list. */
export interface Choice {
  readonly index?: number;
  readonly label?: string;
  readonly group?: string;
  readonly disabled?: boolean;
  readonly selected?: boolean;
}

/** What that person answers. */
export interface Answer {
  readonly question_id: string;
  readonly accept: boolean;
  readonly text?: string;
  /** Names of files of the session. */
  readonly files?: readonly string[];
  /** Which option of a list. */
  readonly option?: number;
}

/** One who watches. */
export interface Viewer {
  readonly id: string;
  readonly name: string;
  readonly can_control?: boolean;
  /** The client as which it controls. */
  readonly client_id: string;
}

/** A problem document. */
export interface Problem {
  readonly type?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly winner_client_id?: string;
  readonly holder_client_id?: string;
}

/** What the service tells in text, of what this page looks at. */
export interface Told {
  readonly hello?: { readonly session_id: string; readonly viewer: Viewer; readonly media?: string };
  readonly state?: State;
  readonly viewers?: { readonly viewers: readonly Viewer[] };
  readonly heartbeat?: object;
  readonly ended?: { readonly reason?: string };
  readonly refused?: Problem;
  readonly clipboard?: { readonly text?: string };
  /** Where pictures come over LiveKit. */
  readonly room?: { readonly url: string; readonly token: string };
  /** The last message of a stream that has failed. */
  readonly error?: Problem;
}

/** What is told of a key. */
interface KeyEvent {
  readonly key: string;
  readonly code?: string;
  readonly location?: number;
}

/** One finger on the picture. */
export interface Finger {
  readonly id: number;
  readonly x: number;
  readonly y: number;
}

/** What a person does, as `InputEvent` of the interface has it. */
export type InputEvent =
  | { readonly kind: "pointer_move"; readonly x: number; readonly y: number }
  | {
      readonly kind: "pointer_down" | "pointer_up";
      readonly x: number;
      readonly y: number;
      readonly button: "left" | "middle" | "right";
      readonly click_count: number;
    }
  | { readonly kind: "wheel"; readonly x: number; readonly y: number; readonly dx: number; readonly dy: number }
  | ({ readonly kind: "key_down" | "key_up" } & KeyEvent)
  | { readonly kind: "text" | "paste"; readonly text: string }
  | {
      readonly kind: "composition";
      readonly text: string;
      readonly selection_start: number;
      readonly selection_end: number;
      readonly done: boolean;
    }
  | {
      readonly kind: "touch";
      readonly phase: "start" | "move" | "end" | "cancel";
      readonly points: readonly Finger[];
    };

/** What a person does with a page as a whole. */
export type Command =
  | { readonly kind: "navigate"; readonly url: string }
  | { readonly kind: "back" | "forward" | "reload" | "open_page" }
  | { readonly kind: "activate_page" | "close_page"; readonly page_id: string };
