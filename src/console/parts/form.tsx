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

/** A labelled text of several lines. */
export function TextArea({
  label,
  value,
  rows = 8,
  onText,
}: {
  label: string;
  value: string;
  rows?: number;
  onText: (text: string) => void;
}) {
  return (
    <label>
      {label}
      <textarea rows={rows} spellcheck={false} value={value} onInput={(event) => onText(event.currentTarget.value)} />
    </label>
  );
}

/** The password of whoever is asked, or a new one. */
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
  ...input
}: {
  label: ComponentChildren;
  value: string;
  onText: (text: string) => void;
  type?: 'text' | 'email' | 'password';
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
    </label>
  );
}
