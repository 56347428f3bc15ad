import { useId, useRef, useState } from 'preact/hooks';
import { Refusal, call, prepare, send } from '../api.js';
import { below, pathTo } from '../api-paths.js';
import type { Collection, CollectionsPath } from '../collection.js';
import { invalidate } from '../load.js';
import { say, Trouble, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { Form } from '../parts/form.js';
import { mayChange, project } from '../session.js';
import { AccessMatrix } from './access-matrix.js';
import { findMistake, type Mistake } from './mistake.js';
import { mistakesOf, Reviewed, type Review } from './review.js';

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
  // Of the texts as they stand: who types on is told nothing of what was there before.
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
        <Trouble error={error ?? unchecked} />
        {mayChange.value && <Buttons isBusy={busy || checking} isDirty={isDirty} onCheck={() => void check()} />}
      </Form>
      <Reviewed review={review} texts={typed} />
      {!isDirty && <AccessMatrix id={id} collection={name} />}
      <Commands of={[saving()]} />
      {confirming !== null && (
        <Confirm
          title="Let somebody do more"
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

/** Saves; a mistake becomes what a check finds, and what lets somebody do more asks for the name of the project. */
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

/** What is left empty is `nobody`. */
const rulesOf = (typed: Typed): Partial<Typed> =>
  Object.fromEntries(RULES.filter((rule) => typed[rule].trim() !== '').map((rule) => [rule, typed[rule]]));
