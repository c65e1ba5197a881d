const text = (description: string) => ({ type: "string", description }) as const;
const texts = (description: string) => ({ type: "array", items: { type: "string" }, description }) as const;
const number = (description: string) => ({ type: "number", description }) as const;

const schema = (properties: Record<string, object>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

const place = {
  ref: text("from an observation, such as s7e12"),
  x: number("pixels from the left of the view, where there is no ref"),
  y: number("pixels from its top"),
};

/** Properties of an action: a subset of those of the API, without selectors, which observations do not show. */
const actionProperties = {
  kind: {
    type: "string",
    enum: [
      "tap",
      "type",
      "fill",
      "check",
      "uncheck",
      "key",
      "select",
      "scroll",
      "hover",
      "drag",
      "swipe",
      "upload",
      "back",
      "forward",
      "reload",
      "activate_page",
      "close_page",
      "open_page",
    ],
  },
  ...place,
  count: number("of tap: 2 for a double click"),
  text: text("of type: a newline presses Enter; of fill: the whole value of the field"),
  clear: { type: "boolean", description: "of type: empties the field first" },
  key: text("of key, such as Enter, Escape, ArrowDown"),
  modifiers: texts("of key: Alt, Control, Meta, Shift"),
  values: texts("of select: the values of the options"),
  labels: texts("of select: their labels, instead of values"),
  files: texts("of upload: names from files"),
  dx: number("of scroll: pixels to the right"),
  dy: number("of scroll: pixels down"),
  from: schema(place, []),
  to: schema(place, []),
  page_id: text("of activate_page and close_page"),
};

const known: ReadonlySet<string> = new Set(Object.keys(actionProperties));
const knownOfPlace: ReadonlySet<string> = new Set(Object.keys(place));

/**
 * Returns the name of an unsupported property of an action, such as a selector, if there is one. Providers do not
 * enforce the schema.
 */
export function unknownIn(action: unknown): string | undefined {
  if (typeof action !== "object" || action === null) return undefined;
  const { from, to } = action as Record<string, unknown>;
  const inPlaces = [from, to].flatMap((each) => (typeof each === "object" && each !== null ? Object.keys(each) : []));
  return Object.keys(action).find((name) => !known.has(name)) ?? inPlaces.find((name) => !knownOfPlace.has(name));
}

const actHelp = `Runs actions on the page in the given order, and returns an observation of the settled page. Stops when an action
fails, and when another document or page is shown: act on that in the next call. back, forward, reload, open_page,
activate_page and close_page must come first. tap, hover, fill, check, uncheck, select, upload and usually type take ref,
and key may. drag and swipe take from and to. Prefer fill to type for fields, and check and uncheck to tap for checkboxes,
radio buttons and switches.`;

const offset = { type: "integer", description: "next_offset of the part before" } as const;

const observeProperties = {
  whole: { type: "boolean", description: "includes the part of the page that is not in view" },
  find: text("includes only elements that contain this text, anywhere on the page"),
  ref: text("returns all of the text or value of this element, where a line ends in (+N characters)"),
  offset,
};

/** Only for models that accept pictures. */
const pictureProperties = {
  picture: { type: "boolean", description: "adds a picture of the view, for what has no text or ref" },
  marks: {
    type: "boolean",
    description: "adds a picture with a numbered box around each element with a ref; box 12 is ref s7e12",
  },
};

/** Tools of the model, with their input as JSON Schema. */
export const tools = {
  observe: {
    description: "Returns an observation of what is in view.",
    input: schema(observeProperties, []),
  },
  navigate: {
    description: "Opens an address, and returns an observation of the settled page.",
    input: schema({ url: text("http or https") }),
  },
  read: {
    description:
      "Reads the text of the page, or of one ref, as Markdown: for articles, tables and long texts. It has no refs to act on. If the result has next_offset, call read with it as offset for the next part.",
    input: schema({ ref: text("from an observation"), offset }, []),
  },
  act: {
    description: actHelp,
    input: schema({ actions: { type: "array", items: schema(actionProperties, ["kind"]) } }),
  },
  extract: {
    description:
      "Reads the whole page, or one element of it, and returns data that matches a JSON Schema. Changes nothing on the page.",
    input: schema(
      {
        schema: { type: "object", description: "JSON Schema of the data, with type object" },
        instructions: text("what to include, and how to write it"),
        ref: text("the element to read; the whole page if left out"),
      },
      ["schema"],
    ),
  },
  ask_person: {
    description: "Asks a person to take control, and waits until they return it.",
    input: schema({ instructions: text("what the person should do"), timeout_seconds: { type: "integer" } }, [
      "instructions",
    ]),
  },
  done: {
    description: "Ends the turn with an answer for the person.",
    input: schema({ text: text("the answer") }),
  },
};

/** Additional tools for an agent session that started with a recipe. */
const recipeTools = {
  resume_recipe: {
    description: "Resumes the recipe, once you have repaired the failed step.",
    input: schema({ next_step: { type: "integer", description: "the number of the step to run next" } }),
  },
};

export type ToolDescriptions = Readonly<Record<string, { readonly description: string; readonly input: object }>>;

export interface ToolOptions {
  /** JSON Schema for the result of the turn. */
  readonly outputSchema: object | null;
  /** Whether the model may be asked to repair recipe steps. */
  readonly hasRecipe: boolean;
  /** Whether the model accepts pictures. */
  readonly vision: boolean;
}

/** Returns the tools of a turn. Tools and their order are constant within a turn, so that providers cache them. */
export function toolsFor({ outputSchema, hasRecipe, vision }: ToolOptions): ToolDescriptions {
  const { observe, done } = tools;
  return {
    ...tools,
    ...(vision && { observe: { ...observe, input: schema({ ...observeProperties, ...pictureProperties }, []) } }),
    ...(hasRecipe && recipeTools),
    ...(outputSchema && {
      done: {
        description: `${done.description.slice(0, -1)}, and the requested result.`,
        input: schema({ text: text("the answer"), result: outputSchema }),
      },
    }),
  };
}
