import { useState } from 'preact/hooks';
import { useFormPlace, type InputProps } from './form-place.js';
import { readNumber } from './scalar-inputs.js';

/** A list of texts or numbers: Enter or a comma adds what is typed, Backspace takes the last one. */
export function TagsInput({ id, path, shape, value, describedBy, onChange }: InputProps) {
  const { isFixed, report } = useFormPlace();
  const [typed, setTyped] = useState('');
  const items = Array.isArray(value) ? (value as (string | number)[]) : [];
  const isNumber = shape.items?.type === 'Number';
  const add = (text: string): void => {
    const added = text.split(',').map((each) => each.trim());
    const next = added.filter((each) => each !== '').map((each) => (isNumber ? readNumber(each).value : each));
    const isWrong = next.includes(undefined);
    report(path, isWrong ? 'This is not a number.' : null);
    setTyped(isWrong ? text : '');
    if (isWrong) return;
    if (next.length > 0) onChange([...items, ...next]);
  };
  const remove = (at: number): void => onChange(items.filter((_, index) => index !== at));
  return (
    <span class="tags">
      {items.map((item, at) => (
        <span class="tag" key={`${at} ${item}`} dir="auto">
          {String(item)}
          {!isFixed && (
            <button type="button" class="quiet" aria-label={`Remove ${String(item)}`} onClick={() => remove(at)}>
              ×
            </button>
          )}
        </span>
      ))}
      <input
        id={id}
        value={typed}
        readOnly={isFixed}
        autocomplete="off"
        placeholder={isFixed ? '' : 'Type and press Enter'}
        {...(describedBy !== undefined && { 'aria-describedby': describedBy })}
        onInput={(event) => {
          const text = event.currentTarget.value;
          if (text.includes(',')) add(text);
          else setTyped(text);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') {
            // It ends a tag, and never sends the form.
            event.preventDefault();
            if (typed.trim() !== '') add(typed);
          } else if (event.key === 'Backspace' && typed === '' && items.length > 0 && !isFixed) {
            remove(items.length - 1);
          }
        }}
        onBlur={() => typed.trim() !== '' && add(typed)}
      />
    </span>
  );
}

/** A list of what a schema lets in: each is chosen or not. */
export function ChoicesInput({ id, shape, value, onChange }: InputProps) {
  const { isFixed } = useFormPlace();
  const items = Array.isArray(value) ? (value as (string | number)[]) : [];
  return (
    <span class="tags" id={id} role="group">
      {(shape.items?.enum ?? []).map((choice) => (
        <label key={choice} class="tickable">
          <input
            type="checkbox"
            checked={items.includes(choice)}
            disabled={isFixed}
            onChange={(event) =>
              onChange(event.currentTarget.checked ? [...items, choice] : items.filter((each) => each !== choice))
            }
          />
          {String(choice)}
        </label>
      ))}
    </span>
  );
}
