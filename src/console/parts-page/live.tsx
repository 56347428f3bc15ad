/** @jsxImportSource . */
import type { ComponentChildren } from 'preact';
import { kit } from './given.js';

/** A part whose value is typed or chosen. */
export function Live<T>({ first, show }: { first: T; show: (value: T, set: (next: T) => void) => ComponentChildren }) {
  const [value, setValue] = kit.useState(first);
  return <div>{show(value, (next) => setValue(() => next))}</div>;
}

/** A button, and what it opens. */
export function Opens({ name, show }: { name: string; show: (close: () => void) => ComponentChildren }) {
  const [isOpen, setOpen] = kit.useState(false);
  return (
    <span>
      <button onClick={() => setOpen(true)}>{name}</button>
      {isOpen && show(() => setOpen(false))}
    </span>
  );
}
