import { type DescField, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import type { ApiProblem } from "../../api/problem.ts";
import { CheckField, SelectField, TextArea, TextField } from "../../ui/field.tsx";
import { type PlacedField, valueAt } from "./actions.ts";
import { boundsOf, choicesOf, isRequired, longestOf, placeholderOf } from "./field-rules.ts";

/** Minimum `max_len` of a text field whose input has several lines. */
const longText = 10_000;

interface FieldsProps {
  readonly fields: readonly PlacedField[];
  readonly body: JsonObject;
  readonly problem: ApiProblem | undefined;
  /** Called with undefined if the request leaves the field out. */
  readonly onChange: (path: readonly string[], value: JsonValue | undefined) => void;
}

/** Inputs for fields of a request, with the names, types and limits of the contract. */
export function RequestFields({ fields, ...rest }: FieldsProps) {
  return (
    <div className="grid grid-cols-2 gap-x-3 gap-y-4">
      {fields.map((placed) => (
        <div key={placed.path.join(".")} className={placeOf(placed.field)}>
          <RequestField placed={placed} {...rest} />
        </div>
      ))}
    </div>
  );
}

const wideFields = new Set(["selector", "url", "pattern", "text", "find"]);

/** Returns the classes that place a field in the grid. */
function placeOf(field: DescField): string | undefined {
  if (field.message || field.fieldKind === "list" || wideFields.has(field.name)) return "col-span-2";
  // Half the width of a phone is too narrow for the default text of a select.
  if (choicesOf(field).length > 0) return "col-span-2 sm:col-span-1";
  return field.scalar === ScalarType.BOOL ? "self-end pb-2" : undefined;
}

interface FieldProps extends Omit<FieldsProps, "fields"> {
  readonly placed: PlacedField;
}

function RequestField(props: FieldProps) {
  const { placed, body, problem, onChange } = props;
  const { path, field } = placed;
  const value = valueAt(body, path);
  const change = (next: JsonValue | undefined): void => onChange(path, next);
  const common = { label: field.name, name: path.join("."), problem };
  const choices = choicesOf(field);
  if (field.message) return <MessageField {...props} />;
  if (field.scalar === ScalarType.BOOL) {
    return (
      <CheckField
        label={field.name}
        checked={value === true}
        onChange={({ target }) => change(target.checked || undefined)}
      />
    );
  }
  if (field.fieldKind === "list") {
    return choices.length > 0 ? (
      <ChoicesField label={field.name} choices={choices} value={value} onChange={change} />
    ) : (
      <TextArea
        {...common}
        rows={2}
        hint="One per line."
        defaultValue={Array.isArray(value) ? value.join("\n") : ""}
        onChange={({ target }) => change(target.value === "" ? undefined : target.value.split("\n").filter(Boolean))}
      />
    );
  }
  if (choices.length > 0) {
    return (
      <SelectField {...common} value={String(value ?? "")} onChange={({ target }) => change(target.value || undefined)}>
        <option value="">{placeholderOf(field) ? `${placeholderOf(field)} (default)` : "default"}</option>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </SelectField>
    );
  }
  if (field.scalar !== ScalarType.STRING) return <NumberField {...props} />;
  const texts = {
    defaultValue: typeof value === "string" ? value : "",
    placeholder: placeholderOf(field),
    onChange: ({ target }: { readonly target: { readonly value: string } }) => change(target.value || undefined),
    maxLength: longestOf(field),
    spellCheck: false,
    autoComplete: "off",
  };
  const isLong = (longestOf(field) ?? 0) >= longText;
  return isLong ? <TextArea {...common} {...texts} rows={2} /> : <TextField {...common} {...texts} />;
}

function NumberField({ placed: { path, field }, body, problem, onChange }: FieldProps) {
  const { min, max } = boundsOf(field);
  const text = (bound: number | undefined): string => bound?.toLocaleString() ?? "";
  return (
    <TextField
      type="number"
      label={field.name}
      name={path.join(".")}
      problem={problem}
      min={min}
      max={max}
      step={field.scalar === ScalarType.DOUBLE ? "any" : 1}
      hint={max !== undefined && `${text(min)} to ${text(max)}`}
      placeholder={placeholderOf(field)}
      defaultValue={String(valueAt(body, path) ?? "")}
      onChange={({ target }) => onChange(path, target.value === "" ? undefined : target.valueAsNumber)}
    />
  );
}

interface ChoicesProps {
  readonly label: string;
  readonly choices: readonly string[];
  readonly value: JsonValue | undefined;
  readonly onChange: (value: JsonValue | undefined) => void;
}

/** A field with several values from a list of choices. */
function ChoicesField({ label, choices, value, onChange }: ChoicesProps) {
  const chosen = Array.isArray(value) ? value : [];
  const choose = (choice: string, isChosen: boolean): void => {
    const next = isChosen ? [...chosen, choice] : chosen.filter((each) => each !== choice);
    onChange(next.length > 0 ? next : undefined);
  };
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{label}</legend>
      <div className="flex flex-wrap gap-x-4 gap-y-2">
        {choices.map((choice) => (
          <CheckField
            key={choice}
            label={choice}
            checked={chosen.includes(choice)}
            onChange={({ target }) => choose(choice, target.checked)}
          />
        ))}
      </div>
    </fieldset>
  );
}

/**
 * Fields of a message within a request. If the checkbox of an optional message is off, the request omits the message.
 */
function MessageField({ placed: { path, field }, body, problem, onChange }: FieldProps) {
  const isSet = valueAt(body, path) !== undefined;
  const fields = (field.message?.fields ?? []).map((inner) => ({ path: [...path, inner.name], field: inner }));
  const inner = <RequestFields fields={fields} body={body} problem={problem} onChange={onChange} />;
  if (isRequired(field)) {
    return (
      <fieldset className="border-l-2 border-line pl-3">
        <legend className="mb-2 text-sm font-medium">{field.name}</legend>
        {inner}
      </fieldset>
    );
  }
  return (
    <>
      <CheckField
        label={field.name}
        checked={isSet}
        onChange={({ target }) => onChange(path, target.checked ? {} : undefined)}
      />
      {isSet && (
        <fieldset aria-label={field.name} className="mt-3 border-l-2 border-line pl-3">
          {inner}
        </fieldset>
      )}
    </>
  );
}
