import { useEffect, useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { documentsIn, USERS, type Collection } from '../../collection.js';
import { comboProps, Suggestions } from './suggestions.js';
import { linkTo, place } from '../../routes.js';
import { projectPath } from '../../session.js';
import { titleField, useFormPlace, type InputProps } from './form-place.js';

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
        {...(describedBy !== undefined && { 'aria-describedby': describedBy })}
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
