import { useState } from 'preact/hooks';
import { say } from '../../parts/basics.js';
import { PullDown } from '../../parts/pull-down.js';
import { linkTo, place } from '../../routes.js';
import { keepSetting, readSetting } from '../../settings.js';

interface View {
  name: string;
  /** Of the address. */
  query: Record<string, string>;
}

const MAX_VIEWS = 50;
/** What belongs to a moment, not to a view. */
const PASSING = ['cursor', 'open', 'from', 'tab', 'import'];

/** Filters and order of a collection under names of one's own, kept in this browser. */
export function SavedViews({ base }: { base: string }) {
  const setting = `views ${base}`;
  const [views, setViews] = useState<readonly View[]>(() => readSetting<View[]>(setting) ?? []);
  const [name, setName] = useState('');
  const { parts, query } = place.value;
  const keep = (next: readonly View[]): void => {
    setViews(next);
    keepSetting(setting, next);
  };
  const trimmed = name.trim();
  return (
    <PullDown label={views.length === 0 ? 'Views' : `Views (${views.length})`}>
      <ul>
        {views.map((view) => (
          <li key={view.name}>
            <a href={linkTo(parts, view.query)}>{view.name}</a>
            <button
              class="small quiet end"
              aria-label={`Remove the view ${view.name}`}
              onClick={() => keep(views.filter((each) => each !== view))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (trimmed === '') return;
          const kept = Object.fromEntries([...query].filter(([key]) => !PASSING.includes(key)));
          keep([...views.filter((each) => each.name !== trimmed), { name: trimmed, query: kept }].slice(-MAX_VIEWS));
          setName('');
          say(`The view ${trimmed} is saved in this browser`);
        }}
      >
        <label>
          Save this view as
          <input
            value={name}
            maxLength={60}
            autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <button class="small" disabled={trimmed === ''}>
          Save the view
        </button>
      </form>
    </PullDown>
  );
}
