/** A page of the session. */
export interface PageTab {
  readonly id: string;
  readonly url: string;
  readonly title?: string;
  readonly active?: boolean;
  readonly crashed?: boolean;
}

/** State of the session. */
export interface State {
  readonly status: string;
  readonly pause_reason?: string;
  readonly control: { readonly state: string; readonly holder_client_id?: string };
  readonly control_changed_at?: string;
  readonly pages?: readonly PageTab[];
  readonly questions?: readonly PageQuestion[];
  readonly downloads?: readonly Download[];
}

/** A download that started while the current holder had control. */
export interface Download {
  readonly id: string;
  readonly file_name: string;
  /** A number, or a string for 64-bit integers. */
  readonly bytes?: string | number;
  readonly status: string;
}

/** A question of a page to the person in control. */
export interface PageQuestion {
  readonly id: string;
  readonly page_id: string;
  readonly kind: string;
  readonly message?: string;
  readonly default_text?: string;
  /** Whether a file chooser accepts several files. */
  readonly multiple?: boolean;
  readonly accept?: string;
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

/** Answer of the person in control. */
export interface QuestionAnswer {
  readonly question_id: string;
  readonly accept: boolean;
  readonly text?: string;
  /** Names of session files. */
  readonly files?: readonly string[];
  /** Index of the chosen option. */
  readonly option?: number;
}

export interface ListedViewer {
  readonly id: string;
  readonly name: string;
  readonly can_control?: boolean;
  /** Id of the viewer as a holder of control. */
  readonly client_id: string;
}

export interface Problem {
  readonly type?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly winner_client_id?: string;
  readonly holder_client_id?: string;
}

/** A text message of the service, which has one of these members. */
export interface ServerMessage {
  readonly hello?: { readonly session_id: string; readonly viewer: ListedViewer; readonly media?: string };
  readonly state?: State;
  readonly viewers?: { readonly viewers: readonly ListedViewer[] };
  readonly heartbeat?: object;
  readonly ended?: { readonly reason?: string };
  readonly refused?: Problem;
  readonly clipboard?: { readonly text?: string };
  /** Room for pictures over LiveKit. */
  readonly room?: { readonly url: string; readonly token: string };
  /** Last message of a failed stream. */
  readonly error?: Problem;
}

interface KeyEvent {
  readonly key: string;
  readonly code?: string;
  readonly location?: number;
}

/** A finger on the picture. */
export interface SentFinger {
  readonly id: number;
  readonly x: number;
  readonly y: number;
}

/** Input of a person: `InputEvent` of the API. */
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
      readonly points: readonly SentFinger[];
    };

/** Commands that navigate a page, or open, activate or close a page. */
export type Command =
  | { readonly kind: "navigate"; readonly url: string }
  | { readonly kind: "back" | "forward" | "reload" | "open_page" }
  | { readonly kind: "activate_page" | "close_page"; readonly page_id: string };
