import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { below } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { call } from '../../api.js';
import { documentsIn, USERS, type Collection } from '../../collection.js';
import { linkTo, place } from '../../routes.js';
import { projectPath } from '../../session.js';
import { titleField, useFormPlace, type InputProps } from './form-place.js';
import { readNumber } from './scalar-inputs.js';

type Found = ApiSchemas['ShownDocument'] | ApiSchemas['Account'];

const ID = /^[0-9a-fA-F]{24}$/;
const WAIT_MS = 200;
const SHOWN = 8;

/** The field that people know a collection's documents by. */
const knownBy = (target: Collection | undefined): string | null =>
  target?.name === USERS ? 'email' : titleField(target);

/** What people know the document by, that a Ref names. */
function titleOf(found: Found, title: string | null): string {
  const text = title === null ? undefined : found[title];
  return typeof text === 'string' && text !== '' ? text : found._id;
}

async function search(target: Collection, text: string, signal: AbortSignal): Promise<Found[]> {
  if (target.name === USERS) {
    return (await call('GET', below(projectPath(), '/users'), { query: { q: text, limit: SHOWN }, signal })).items;
  }
  const title = titleField(target);
  const pattern = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const condition = ID.test(text)
    ? { _id: text }
    : text === '' || title === null
      ? {}
      : { [`${title}_regex`]: pattern };
  const path = below(projectPath(), '/collections/{collection}/documents', { collection: target.name });
  const query = { ...condition, limit: SHOWN, fields: title ?? '_id' };
  return documentsIn(await call('GET', path, { query, signal }));
}

/** What is found of a text, a moment after it was typed; null looks for nothing. */
function useFound(target: Collection | undefined, typed: string | null) {
  const [found, setFound] = useState<Found[]>([]);
  useEffect(() => {
    if (typed === null || !target) return undefined;
    const ending = new AbortController();
    const timer = setTimeout(() => {
      search(target, typed.trim(), ending.signal).then(setFound, () => undefined);
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [typed, target]);
  return [found, setFound] as const;
}

/** The document that a Ref names, searched for by its title or id, with its title shown and a link to it. */
export function RefPicker({ id, shape, value, describedBy, onChange }: InputProps) {
  const { collections, isFixed } = useFormPlace();
  const target = collections.find(({ name }) => name === shape.ref);
  const [typed, setTyped] = useState<string | null>(null);
  const [found, setFound] = useFound(target, typed);
  const [at, setAt] = useState(0);
  const shown = typeof value === 'string' ? value : '';
  const title = knownBy(target);
  const choose = (next: string | undefined): void => {
    setTyped(null);
    setFound([]);
    onChange(next);
  };
  const isOpen = typed !== null && found.length > 0;
  return (
    <span class="ref">
      <input
        id={id}
        {...comboProps(id, isOpen, at)}
        dir="auto"
        value={typed ?? shown}
        readOnly={isFixed}
        placeholder={target ? `Search ${target.name}` : 'Id of a document'}
        aria-describedby={describedBy}
        onFocus={() => !isFixed && shown === '' && setTyped('')}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setAt(0);
          setTyped(text);
          if (text === '' || ID.test(text.trim()) || !target) onChange(text.trim() === '' ? undefined : text.trim());
        }}
        onKeyDown={(event) => {
          if (!isOpen) return;
          const act = {
            ArrowDown: () => setAt(Math.min(at + 1, found.length - 1)),
            ArrowUp: () => setAt(Math.max(at - 1, 0)),
            Enter: () => choose(found[at]!._id),
            Escape: () => setTyped(null),
          }[event.key];
          if (!act) return;
          act();
          event.preventDefault();
          event.stopPropagation();
        }}
        onBlur={() => setTyped(null)}
      />
      {isOpen && (
        <Suggestions
          id={id}
          label={`Found in ${shape.ref ?? ''}`}
          at={at}
          items={found.map((each) => ({ key: each._id, shown: <Title found={each} title={title} /> }))}
          onChoose={(index) => choose(found[index]!._id)}
        />
      )}
      {ID.test(shown) && target && <Preview target={target} id={shown} />}
    </span>
  );
}

function Title({ found, title }: { found: Found; title: string | null }) {
  return (
    <>
      <span dir="auto">{titleOf(found, title)}</span> <code>{found._id}</code>
    </>
  );
}

/** The title of what is chosen, as a link to it. */
function Preview({ target, id }: { target: Collection; id: string }) {
  const [found, setFound] = useState<Found | null | undefined>(undefined);
  useEffect(() => {
    const ending = new AbortController();
    setFound(undefined);
    search(target, id, ending.signal).then(
      (items) => setFound(items[0] ?? null),
      () => setFound(undefined),
    );
    return () => ending.abort();
  }, [target, id]);
  const [, project = ''] = place.value.parts;
  const parts = target.name === USERS ? ['p', project, USERS] : ['p', project, 'documents', target.name];
  if (found === undefined) return null;
  if (found === null) return <span class="hint">There is no such document in {target.name}.</span>;
  return (
    <a class="hint" href={linkTo(parts, { open: id })} dir="auto">
      {titleOf(found, knownBy(target))}
    </a>
  );
}

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
        aria-describedby={describedBy}
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

/** What an input with the role of a combobox is given, for the list below it. */
export const comboProps = (id: string, isShown: boolean, at: number) => ({
  role: 'combobox' as const,
  'aria-expanded': isShown,
  'aria-controls': `${id}-list`,
  'aria-autocomplete': 'list' as const,
  autocomplete: 'off' as const,
  ...(isShown && at >= 0 && { 'aria-activedescendant': `${id}-${at}` }),
});

/** The list below a combobox; a press chooses before the input loses the focus. */
export function Suggestions({
  id,
  label,
  items,
  at,
  onChoose,
}: {
  id: string;
  label: string;
  items: readonly { key: string; shown: ComponentChildren }[];
  /** The one that the arrows have reached; -1 for none. */
  at: number;
  onChoose: (index: number) => void;
}) {
  return (
    <ul class="suggested" role="listbox" id={`${id}-list`} aria-label={label}>
      {items.map(({ key, shown }, index) => (
        <li
          key={key}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose(index);
          }}
        >
          {shown}
        </li>
      ))}
    </ul>
  );
}
