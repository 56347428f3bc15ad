import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { CollectionField } from '../../collection.js';

/** One cell while it is edited: Enter stores, Esc does not, Tab stores and goes to the next one. */
export function CellInput({
  field,
  text,
  onText,
  onStore,
  onCancel,
}: {
  field: CollectionField;
  text: string;
  onText: (text: string) => void;
  /** The problem when it was not stored. */
  onStore: (text: string, isBack: boolean | null) => Promise<string | null>;
  onCancel: () => void;
}) {
  const input = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const busy = useRef(false);
  // Before the next key: what is typed quickly is all its own.
  useLayoutEffect(() => input.current?.focus(), []);
  const store = async (isBack: boolean | null): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    const found = await onStore(input.current?.value ?? text, isBack);
    busy.current = false;
    setProblem(found);
  };
  const common = {
    ref: input,
    'aria-label': field.name,
    value: text,
    onInput: (event: { currentTarget: { value: string } }) => onText(event.currentTarget.value),
    onBlur: () => void store(null),
    onKeyDown: (event: KeyboardEvent) => {
      event.stopPropagation();
      const act = {
        Enter: () => void store(null),
        Tab: () => void store(event.shiftKey),
        Escape: () => {
          // Losing the focus on the way stores nothing.
          busy.current = true;
          onCancel();
        },
      }[event.key];
      if (!act) return;
      act();
      event.preventDefault();
    },
  };
  const choices = field.enum?.map(String) ?? (field.type === 'Boolean' ? ['true', 'false'] : null);
  return (
    <>
      {choices ? (
        <select {...common}>
          {(!field.required || text === '') && <option value="">not set</option>}
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : field.type === 'Date' ? (
        <input {...common} type="datetime-local" step={1} />
      ) : (
        <input {...common} autocomplete="off" dir="auto" {...(field.type === 'Number' && { inputMode: 'decimal' })} />
      )}
      {problem !== null && (
        <span class="field-error" role="alert">
          {problem}
        </span>
      )}
    </>
  );
}
