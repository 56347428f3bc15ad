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

/** A labelled line of text. */
export function Field({
  label,
  onText,
  type = 'text',
  ...input
}: {
  label: ComponentChildren;
  value: string;
  onText: (text: string) => void;
  type?: 'text' | 'email' | 'password';
  required?: boolean;
  autocomplete?: 'username' | 'current-password' | 'new-password' | 'off';
}) {
  return (
    <label>
      {label}
      {/* Preact's types tell inputs apart by their type, for the role that each may have: none is set here. */}
      <input {...input} type={type as 'text'} onInput={(event) => onText(event.currentTarget.value)} />
    </label>
  );
}
