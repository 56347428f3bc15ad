import type { ComponentChildren } from 'preact';

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
  onChoose,
}: {
  label: string;
  value: Value;
  choices: readonly (readonly [value: Value, name: string])[];
  onChoose: (value: Value) => void;
}) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value as Value)}>
        {choices.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A labelled box to tick. */
export function Tick({ label, isOn, onTick }: { label: string; isOn: boolean; onTick: (isOn: boolean) => void }) {
  return (
    <label class="tickable">
      <input type="checkbox" checked={isOn} onChange={(event) => onTick(event.currentTarget.checked)} />
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
  onText,
}: {
  label: string;
  value: string;
  rows?: number;
  hint?: string;
  onText: (text: string) => void;
}) {
  return (
    <label>
      {label}
      <textarea rows={rows} spellcheck={false} value={value} onInput={(event) => onText(event.currentTarget.value)} />
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  );
}

/** The password of the operator, or a new one. */
export function PasswordField({
  label,
  isNew = false,
  value,
  onText,
}: {
  label: string;
  isNew?: boolean;
  value: string;
  onText: (text: string) => void;
}) {
  return (
    <Field
      label={label}
      type="password"
      required
      autocomplete={isNew ? 'new-password' : 'current-password'}
      value={value}
      onText={onText}
    />
  );
}

/** A labelled line of text. */
export function Field({
  label,
  onText,
  type = 'text',
  isWhole = false,
  hint,
  ...input
}: {
  label: ComponentChildren;
  hint?: string;
  value: string;
  onText: (text: string) => void;
  type?: 'text' | 'email' | 'password' | 'url';
  placeholder?: string;
  /** A whole number in digits. */
  isWhole?: boolean;
  required?: boolean;
  autocomplete?: 'username' | 'current-password' | 'new-password' | 'off';
}) {
  return (
    <label>
      {label}
      {/* Preact's types tell inputs apart by their type, for the role that each may have: none is set here. */}
      <input
        {...input}
        {...(isWhole && { inputMode: 'numeric' as const, pattern: '\\d{1,15}' })}
        {...({ type } as { type: 'text' })}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  );
}
