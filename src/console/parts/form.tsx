import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { changedEntries } from '../json.js';

/** What ties an input to its value. */
export interface Bound<Value> {
  value: Value;
  onChange: (value: Value) => void;
}

/** The values of a form by name: `at` ties an input to one, `changed` are those that differ from the first ones. */
export function useForm<Values extends object>(initial: Values) {
  const [first] = useState(initial);
  const [values, setValues] = useState(initial);
  const changed = changedEntries(first, values);
  return {
    values,
    changed,
    isDirty: Object.keys(changed).length > 0,
    at: <Name extends keyof Values>(name: Name): Bound<Values[Name]> => ({
      value: values[name],
      onChange: (value) => setValues((before) => ({ ...before, [name]: value })),
    }),
    reset: () => setValues(first),
  };
}

/** A form that stays on the page. */
export function Form({
  onSubmit,
  children,
  ...rest
}: {
  onSubmit: () => void;
  class?: string;
  children: ComponentChildren;
}) {
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** A labelled choice of a few. */
export function Choice<Value extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  choices: readonly (readonly [value: Value, name: string])[];
} & Bound<Value>) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as Value)}>
        {choices.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A choice of one of many names, with a label for readers of the page. */
export function NameChoice({
  label,
  value,
  names,
  unchosen,
  onChange,
}: {
  label: string;
  value: string | undefined;
  names: readonly (readonly [value: string, name: string])[];
  /** Shown while none is chosen. */
  unchosen: string;
  onChange: (value: string) => void;
}) {
  return (
    <label>
      <span class="hidden">{label}</span>
      <select value={value ?? ''} onChange={(event) => onChange(event.currentTarget.value)}>
        {value === undefined && <option value="">{unchosen}</option>}
        {names.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A labelled box to tick. */
export function Tick({ label, value, onChange }: { label: string } & Bound<boolean>) {
  return (
    <label class="tickable">
      <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

/** What is between commas or lines, without what is empty. */
export const listIn = (text: string): string[] =>
  text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** A labelled text of several lines. */
export function TextArea({
  label,
  value,
  rows = 8,
  hint,
  onChange,
}: {
  label: string;
  rows?: number;
  hint?: string;
} & Bound<string>) {
  return (
    <label>
      {label}
      <textarea rows={rows} spellcheck={false} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  );
}

/** The password of the operator, or a new one. */
export function PasswordField({
  label,
  isNew = false,
  ...bound
}: {
  label: string;
  isNew?: boolean;
} & Bound<string>) {
  return (
    <Field
      label={label}
      type="password"
      required
      autocomplete={isNew ? 'new-password' : 'current-password'}
      {...bound}
    />
  );
}

/** A labelled line of text. */
export function Field({
  label,
  onChange,
  type = 'text',
  isWhole = false,
  hint,
  autocomplete = 'off',
  ...input
}: {
  label: ComponentChildren;
  hint?: string;
  type?: 'text' | 'email' | 'password' | 'url';
  placeholder?: string;
  /** A whole number in digits. */
  isWhole?: boolean;
  required?: boolean;
  /** Off unless the browser may fill it in. */
  autocomplete?: 'username' | 'current-password' | 'new-password' | 'off';
} & Bound<string>) {
  return (
    <label>
      {label}
      {/* Preact's types tell inputs apart by their type, for the role that each may have: none is set here. */}
      <input
        {...input}
        autocomplete={autocomplete}
        {...(isWhole && { inputMode: 'numeric' as const, pattern: '\\d{1,15}' })}
        {...({ type } as { type: 'text' })}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  );
}
