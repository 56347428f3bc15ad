import { useId, useRef, useState } from 'preact/hooks';
import { below, pathTo, withQuery } from '../api-paths.js';
import { Refusal, call, prepare, send } from '../api.js';
import type { Collection, CollectionsPath } from '../collection.js';
import { invalidate, useLoad } from '../load.js';
import { say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { Form, Field } from '../parts/form.js';
import { mayChange, project } from '../session.js';

const RULES = ['read', 'create', 'update', 'delete', 'updateTo'] as const;
type RuleName = (typeof RULES)[number];
type Typed = Record<RuleName, string>;

const MEANINGS: Record<RuleName, string> = {
  read: 'Which documents are shown: lists, counts, single ones, joins, changes',
  create: 'Which documents may be stored',
  update: 'Which may be changed; holds before and after the change',
  delete: 'Which may be moved to the trash or removed',
  updateTo: 'What a change may lead to, where that is something else than “update”; may be left empty',
};

/** The rules of a collection as texts, each mistake at its character, and who may do what by them. */
export function RulesEditor({
  id,
  base,
  collection,
}: {
  /** Of the project. */
  id: string;
  base: CollectionsPath;
  collection: Collection;
}) {
  const { name, rules } = collection;
  const [typed, setTyped] = useState<Typed>(() => textsOf(rules));
  const [confirming, setConfirming] = useState<string | null>(null);
  // Of the texts as they stand: editing hides findings about earlier texts.
  const [review, setReview] = useState<Review | null>(null);
  const path = below(base, '/{collection}/rules', { collection: name });
  const body = { rules: rulesOf(typed) };
  const saving = (confirm?: string) => prepare('PUT', path, { query: { confirm }, body });
  const [busy, save, error] = useAction(() =>
    saveReviewed(
      async () => {
        await send(saving());
        say('Rules changed');
        invalidate(path);
      },
      typed,
      setReview,
      setConfirming,
    ),
  );
  const [checking, check, unchecked] = useAction(async () => {
    const asked = pathTo('/api/projects/{projectId}/rules/{collection}/check', { projectId: id, collection: name });
    setReview(await call('POST', asked, { body: { ...body, data: true } }));
  });
  const mistakes = mistakesOf(review, typed);
  const isDirty = RULES.some((rule) => typed[rule] !== textsOf(rules)[rule]);
  const owner = project.value?.name ?? '';
  return (
    <>
      {collection.access !== 'rules' && <p class="muted">{WITHOUT[collection.access]}</p>}
      <Form onSubmit={() => void save()}>
        {RULES.map((rule) => (
          <RuleText
            key={rule}
            rule={rule}
            text={typed[rule]}
            mistake={mistakes.find((each) => each.rule === rule) ?? null}
            onText={(text) => {
              setTyped({ ...typed, [rule]: text });
              setReview(null);
            }}
          />
        ))}
        <ErrorNote error={error ?? unchecked} />
        {mayChange.value && <Buttons isBusy={busy || checking} isDirty={isDirty} onCheck={() => void check()} />}
      </Form>
      <Reviewed review={review} texts={typed} />
      {!isDirty && <AccessMatrix id={id} collection={name} />}
      <Commands of={[saving()]} />
      {confirming !== null && (
        <Confirm
          title="Loosen access rules?"
          text={confirming}
          name={owner}
          action="Change the rules"
          request={saving(owner)}
          done="Rules changed"
          onClose={() => setConfirming(null)}
        />
      )}
    </>
  );
}

/** Saves. Errors are shown as findings; rules that grant more ask for the project's name. */
async function saveReviewed(
  send: () => Promise<void>,
  typed: Typed,
  review: (found: Review | null) => void,
  confirm: (what: string) => void,
): Promise<void> {
  review(null);
  try {
    await send();
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    const isMistake = findMistake(refusal, typed) !== null;
    if (isMistake) review({ findings: [refusal], loosens: [] });
    const asks = refusal.code === 'CONFIRMATION_REQUIRED';
    if (asks) confirm(refusal.message.replace(/: repeat it with .*$/, ''));
    if (!isMistake && !asks) throw refusal;
  }
}

function Buttons({ isBusy, isDirty, onCheck }: { isBusy: boolean; isDirty: boolean; onCheck: () => void }) {
  return (
    <p class="row">
      <button class="primary" disabled={isBusy || !isDirty}>
        Save the rules
      </button>
      <button type="button" disabled={isBusy || !isDirty} onClick={onCheck}>
        Check without saving
      </button>
    </p>
  );
}

const BY_OWNER = 'Row-level security says who may do what. Rules take its place.';
const WITHOUT: Record<Exclude<Collection['access'], 'rules'>, string> = {
  public:
    'Public: everyone with the publishable key reads it, only the secret key writes. Rules take the place of that.',
  'public-read': BY_OWNER,
  private: BY_OWNER,
  'server-only': 'Server only: nothing is read or written with the publishable key.',
};

function RuleText({
  rule,
  text,
  mistake,
  onText,
}: {
  rule: RuleName;
  text: string;
  mistake: Mistake | null;
  onText: (text: string) => void;
}) {
  const id = useId();
  const input = useRef<HTMLTextAreaElement>(null);
  const goToMistake = (at: number): void => {
    input.current?.focus();
    input.current?.setSelectionRange(at, at + 1);
  };
  return (
    <>
      <label>
        {rule}
        <textarea
          ref={input}
          rows={2}
          spellcheck={false}
          readOnly={!mayChange.value}
          value={text}
          aria-invalid={mistake !== null}
          aria-describedby={`${id}-hint${mistake ? ` ${id}-mistake` : ''}`}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      </label>
      <p class="hint" id={`${id}-hint`}>
        {MEANINGS[rule]}
      </p>
      {mistake && (
        <p class="bad" id={`${id}-mistake`} role="alert">
          {mistake.message}{' '}
          <button type="button" class="small" onClick={() => goToMistake(mistake.at)}>
            Go to character {mistake.at + 1}
          </button>
          <br />
          <code>
            {mistake.before}
            <mark>{mistake.marked}</mark>
            {mistake.after}
          </code>
        </p>
      )}
    </>
  );
}

const textsOf = (rules: Collection['rules']): Typed => ({
  read: rules?.read ?? '',
  create: rules?.create ?? '',
  update: rules?.update ?? '',
  delete: rules?.delete ?? '',
  updateTo: rules?.updateTo ?? '',
});

/** Empty rules are `nobody`. */
const rulesOf = (typed: Typed): Partial<Typed> =>
  Object.fromEntries(RULES.filter((rule) => typed[rule].trim() !== '').map((rule) => [rule, typed[rule]]));

/** A mistake in a rule, with the text around it. */
interface Mistake {
  rule: string;
  /** The whole text that it was found in. */
  text: string;
  message: string;
  /** The position of its character. */
  at: number;
  before: string;
  marked: string;
  after: string;
}

/** Characters that are shown before and after a mistake. */
const AROUND = 40;

/** The mistake that a refusal or a finding places in one of the rules; null where it is about something else. */
function findMistake(
  { code, details = [] }: Pick<Refusal, 'code'> & Partial<Pick<Refusal, 'details'>>,
  texts: Readonly<Record<string, string>>,
): Mistake | null {
  const [detail] = details;
  const rule = detail?.field.replace(/^rules\./, '') ?? '';
  const text = texts[rule];
  const at = Number(detail?.rule);
  if (code !== 'INVALID_RULE' || text === undefined || !Number.isInteger(at)) return null;
  const message = detail!.message.replace(/^\w+: /, '').replace(/ \(at character \d+\)$/, '');
  const from = Math.max(0, at - AROUND);
  return {
    rule,
    text,
    message,
    at,
    before: (from > 0 ? '…' : '') + text.slice(from, at),
    // At its end something is missing.
    marked: text.slice(at, at + 1) || ' ',
    after: text.slice(at + 1, at + AROUND) + (text.length > at + AROUND ? '…' : ''),
  };
}

/** What the server says of rules that are not saved. */
interface Review {
  findings: (Pick<Refusal, 'code' | 'message'> & Partial<Pick<Refusal, 'details'>>)[];
  loosens: string[];
}

type Texts = Readonly<Record<string, string>>;

function mistakesOf(review: Review | null, texts: Texts): Mistake[] {
  return (review?.findings ?? []).flatMap((each) => findMistake(each, texts) ?? []);
}

/** What stands in the way of the rules besides mistakes, and what they would loosen. */
function Reviewed({ review, texts }: { review: Review | null; texts: Texts }) {
  if (!review) return null;
  const { findings, loosens } = review;
  if (findings.length + loosens.length === 0) return <p role="status">Nothing is wrong with these rules.</p>;
  const others = findings.filter((each) => !findMistake(each, texts)).map(({ message }) => message);
  const lines = [...others, ...loosens.map((line) => `Grants more access: ${line}`)];
  return (
    <div role="status">
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

const ANYONE = 'anyone';
const TONES = { yes: 'good', no: 'bad', depends: 'warn' } as const;

/** Who may do what in a collection: a row for each user who was asked about. */
function AccessMatrix({ id, collection }: { id: string; collection: string }) {
  const [who, setWho] = useState<readonly string[]>([ANYONE]);
  const [typed, setTyped] = useState('');
  const add = (): void => {
    const user = typed.trim();
    if (user !== '' && !who.includes(user)) setWho([...who, user]);
    setTyped('');
  };
  return (
    <section aria-label="Who may do what">
      <h3>Who may do what</h3>
      <div class="scroll" role="region" aria-label="Who may do what, as a table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {['Who', 'read', 'create', 'update', 'delete', 'Memberships'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {who.map((user) => (
              <MatrixRow key={user} id={id} collection={collection} user={user} />
            ))}
          </tbody>
        </table>
      </div>
      <Form class="row" onSubmit={add}>
        <Field label="Another user: address or id" value={typed} onChange={setTyped} />
        <button>Show access of this user</button>
      </Form>
      <p class="muted">“depends”: on the document. The tab “Access” of a document says it for that one.</p>
    </section>
  );
}

function MatrixRow({ id, collection, user }: { id: string; collection: string; user: string }) {
  const path = pathTo('/api/projects/{projectId}/rules/{collection}/explain', { projectId: id, collection });
  const { data, error, reload } = useLoad(withQuery(path, { as: user }));
  const sets = new Map(data?.rules.flatMap((rule) => rule.sets.map(({ text, values }) => [text, values] as const)));
  return (
    <tr>
      <th scope="row">{user === ANYONE ? 'anyone, not signed in' : user}</th>
      {error && (
        <td colSpan={5}>
          <ErrorNote error={error} onRetry={reload} />
        </td>
      )}
      {!error &&
        ['read', 'create', 'update', 'delete'].map((rule) => {
          const admits = data?.rules.find((each) => each.rule === rule)?.admits;
          return <td key={rule}>{admits && <span class={`tag ${TONES[admits]}`}>{admits}</span>}</td>;
        })}
      {!error && <td class="wrapped">{[...sets].map(([text, values]) => `${text}: ${values}`).join(' · ')}</td>}
    </tr>
  );
}
