export interface Key {
  /** Physical key, such as `KeyA` (UI Events KeyboardEvent code values). */
  readonly code: string;
  /** Key values without and with Shift (UI Events KeyboardEvent key values). */
  readonly plain: string;
  readonly shifted: string;
  /** `KeyboardEvent.keyCode`. */
  readonly keyCode: number;
  /** `KeyboardEvent.location`: 1 left, 2 right, 3 numeric keypad, else 0. */
  readonly location: number;
}

function named(name: string, keyCode: number, code = name, location = 0): Key {
  return { code, plain: name, shifted: name, keyCode, location };
}

export const modifierKeys = {
  Alt: named("Alt", 18, "AltLeft", 1),
  Control: named("Control", 17, "ControlLeft", 1),
  Meta: named("Meta", 91, "MetaLeft", 1),
  Shift: named("Shift", 16, "ShiftLeft", 1),
} as const;

export type Modifier = keyof typeof modifierKeys;

export function isModifier(name: string): name is Modifier {
  return name in modifierKeys;
}

export const deleteKey = named("Delete", 46);

const letters = Array.from("abcdefghijklmnopqrstuvwxyz", (plain): Key => {
  const shifted = plain.toUpperCase();
  return { code: `Key${shifted}`, plain, shifted, keyCode: shifted.charCodeAt(0), location: 0 };
});

const digits = Array.from(")!@#$%^&*(", (shifted, digit): Key => {
  return { code: `Digit${digit}`, plain: String(digit), shifted, keyCode: 48 + digit, location: 0 };
});

const signs = (
  [
    ["Space", " ", " ", 32],
    ["Semicolon", ";", ":", 186],
    ["Equal", "=", "+", 187],
    ["Comma", ",", "<", 188],
    ["Minus", "-", "_", 189],
    ["Period", ".", ">", 190],
    ["Slash", "/", "?", 191],
    ["Backquote", "`", "~", 192],
    ["BracketLeft", "[", "{", 219],
    ["Backslash", "\\", "|", 220],
    ["BracketRight", "]", "}", 221],
    ["Quote", "'", '"', 222],
  ] as const
).map(([code, plain, shifted, keyCode]): Key => ({ code, plain, shifted, keyCode, location: 0 }));

const namedKeys = [
  named("Backspace", 8),
  named("Tab", 9),
  named("Enter", 13),
  named("Pause", 19),
  named("CapsLock", 20),
  named("Escape", 27),
  named("PageUp", 33),
  named("PageDown", 34),
  named("End", 35),
  named("Home", 36),
  named("ArrowLeft", 37),
  named("ArrowUp", 38),
  named("ArrowRight", 39),
  named("ArrowDown", 40),
  named("PrintScreen", 44),
  named("Insert", 45),
  deleteKey,
  named("ContextMenu", 93),
  ...Array.from({ length: 24 }, (_, index) => named(`F${index + 1}`, 112 + index)),
  named("NumLock", 144),
  named("ScrollLock", 145),
  named("AudioVolumeMute", 173),
  named("AudioVolumeDown", 174),
  named("AudioVolumeUp", 175),
  named("MediaTrackNext", 176),
  named("MediaTrackPrevious", 177),
  named("MediaStop", 178),
  named("MediaPlayPause", 179),
];

const rightKeys = [
  named("Alt", 18, "AltRight", 2),
  named("Control", 17, "ControlRight", 2),
  named("Meta", 92, "MetaRight", 2),
  named("Shift", 16, "ShiftRight", 2),
];

const numericBlock = [
  ...Array.from({ length: 10 }, (_, digit) => named(String(digit), 96 + digit, `Numpad${digit}`, 3)),
  named("*", 106, "NumpadMultiply", 3),
  named("+", 107, "NumpadAdd", 3),
  named("-", 109, "NumpadSubtract", 3),
  named(".", 110, "NumpadDecimal", 3),
  named("/", 111, "NumpadDivide", 3),
  named("Enter", 13, "NumpadEnter", 3),
];

/** The US layout without the numeric keypad, which adds no characters. */
const mainBlock = [...letters, ...digits, ...signs, ...namedKeys, ...Object.values(modifierKeys)];

const byCode = new Map([...mainBlock, ...rightKeys, ...numericBlock].map((key) => [key.code, key]));
const byPlain = new Map(mainBlock.map((key) => [key.plain, key]));
const byShifted = new Map(mainBlock.map((key) => [key.shifted, key]));

/** Key names of control characters. */
const inText: Readonly<Record<string, string>> = { "\n": "Enter", "\r": "Enter", "\r\n": "Enter", "\t": "Tab" };

/** A key of the layout, and whether it needs Shift. */
export interface FoundKey {
  readonly key: Key;
  readonly withShift: boolean;
}

/** Finds the key for a character, a key name or a code, such as `a`, `A`, `Enter`, `\n` or `NumpadEnter`. */
export function findKey(name: string): FoundKey | undefined {
  const wanted = inText[name] ?? name;
  const plain = byPlain.get(wanted) ?? byCode.get(wanted);
  if (plain) return { key: plain, withShift: false };
  const shifted = byShifted.get(wanted);
  return shifted && { key: shifted, withShift: true };
}
