import { useState } from 'preact/hooks';
import { readJson } from '../../json.js';
import { utc } from '../../session.js';
import { useFormPlace, type InputProps } from './form-place.js';

const LONG = 80;

/** A value as it stands in an input. */
export function writeScalar(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A line of text, or an area where the text may be long. */
export function TextInput({ id, shape, value, describedBy, onChange }: InputProps) {
  const { isFixed } = useFormPlace();
  const text = writeScalar(value);
  // Decided once: an input that becomes another one loses the place in it.
  const [isLong] = useState(() => text.length > LONG || text.includes('\n') || (shape.maxLength ?? 0) > 200);
  const common = {
    id,
    value: text,
    readOnly: isFixed,
    autocomplete: 'off' as const,
    dir: 'auto' as const,
    placeholder: value === '' ? 'empty text' : '',
    'aria-describedby': describedBy,
  };
  const change = (next: string): void => onChange(next === '' ? undefined : next);
  if (isLong) {
    return <textarea {...common} rows={6} class="text" onInput={(event) => change(event.currentTarget.value)} />;
  }
  return <input {...common} onInput={(event) => change(event.currentTarget.value)} />;
}

const NUMBER = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;

/** The number that a text is, or why it is none that could be stored as it stands. */
export function readNumber(text: string): { value: number | undefined; problem: string | null } {
  const trimmed = text.trim();
  if (trimmed === '') return { value: undefined, problem: null };
  if (!NUMBER.test(trimmed)) return { value: undefined, problem: 'This is not a number.' };
  const value = Number(trimmed);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return { value: undefined, problem: 'It has more digits than a number of JSON keeps: store it as a text.' };
  }
  return { value, problem: null };
}

export function NumberInput({ id, path, value, describedBy, onChange }: InputProps) {
  const { isFixed, report } = useFormPlace();
  const shown = writeScalar(value);
  const [typed, setTyped] = useState<string | null>(null);
  // A value that was set elsewhere replaces what was typed.
  const text =
    typed !== null && (readNumber(typed).problem !== null || readNumber(typed).value === value) ? typed : shown;
  return (
    <input
      id={id}
      inputMode="decimal"
      class="numeric"
      autocomplete="off"
      value={text}
      readOnly={isFixed}
      aria-describedby={describedBy}
      onInput={(event) => {
        const next = event.currentTarget.value;
        const { value: number, problem } = readNumber(next);
        setTyped(next);
        report(path, problem);
        if (problem === null) onChange(number);
      }}
    />
  );
}

export function SwitchInput({ id, value, describedBy, onChange }: InputProps) {
  const { isFixed } = useFormPlace();
  return (
    <span class="switch">
      <input
        id={id}
        type="checkbox"
        role="switch"
        checked={value === true}
        disabled={isFixed}
        aria-describedby={describedBy}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span class="muted">{value === true ? 'true' : value === false ? 'false' : 'not set'}</span>
    </span>
  );
}

/** A moment in the zone that the console shows. */
export function DateInput({ id, value, describedBy, onChange }: InputProps) {
  const { isFixed } = useFormPlace();
  const date = typeof value === 'string' ? new Date(value) : null;
  const isDate = date !== null && !Number.isNaN(date.getTime());
  const shift = isDate && !utc.value ? date.getTimezoneOffset() * 60_000 : 0;
  const shown = isDate ? new Date(date.getTime() - shift).toISOString().slice(0, 19) : '';
  return (
    <span class="with-button">
      <input
        id={id}
        type="datetime-local"
        step={1}
        value={shown}
        readOnly={isFixed}
        aria-describedby={describedBy}
        onInput={(event) => {
          const text = event.currentTarget.value;
          const next = new Date(utc.value ? `${text}Z` : text);
          onChange(text === '' || Number.isNaN(next.getTime()) ? undefined : next.toISOString());
        }}
      />
      {!isFixed && (
        <button type="button" class="small" onClick={() => onChange(new Date().toISOString())}>
          Now
        </button>
      )}
      <span class="muted">{utc.value ? 'UTC' : 'local time'}</span>
    </span>
  );
}

export function EnumInput({ id, shape, value, isRequired, describedBy, onChange }: InputProps) {
  const { isFixed } = useFormPlace();
  const choices = shape.enum ?? [];
  const at = choices.findIndex((choice) => choice === value);
  const isOther = at < 0 && value !== undefined && value !== null;
  return (
    <select
      id={id}
      disabled={isFixed}
      value={isOther ? 'other' : String(at)}
      aria-describedby={describedBy}
      onChange={({ currentTarget: { value: chosen } }) => {
        if (chosen !== 'other') onChange(chosen === '-1' ? undefined : choices[Number(chosen)]);
      }}
    >
      {(!isRequired || at < 0) && <option value="-1">not set</option>}
      {isOther && <option value="other">{writeScalar(value)} (not allowed)</option>}
      {choices.map((choice, index) => (
        <option key={choice} value={String(index)}>
          {String(choice)}
        </option>
      ))}
    </select>
  );
}

/** Any value as JSON, where no form can be made of it. */
export function JsonInput({ id, path, value, describedBy, onChange }: InputProps) {
  const { isFixed, report } = useFormPlace();
  const shown = value === undefined ? '' : JSON.stringify(value, null, 2);
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  const text = typed && (typed.of === shown || readAny(typed.text).problem !== null) ? typed.text : shown;
  return (
    <textarea
      id={id}
      rows={Math.min(12, Math.max(2, text.split('\n').length))}
      spellcheck={false}
      value={text}
      readOnly={isFixed}
      placeholder="JSON"
      aria-describedby={describedBy}
      onInput={(event) => {
        const next = event.currentTarget.value;
        const read = readAny(next);
        setTyped({ text: next, of: read.value === undefined ? '' : JSON.stringify(read.value, null, 2) });
        report(path, read.problem);
        if (read.problem === null) onChange(read.value);
      }}
    />
  );
}

const readAny = (text: string): ReturnType<typeof readJson> =>
  text.trim() === '' ? { value: undefined, problem: null } : readJson(text);
