import { useState } from 'preact/hooks';
import { below, pathTo } from '../../api-paths.js';
import { call } from '../../api.js';
import type { Collection } from '../../collection.js';
import { useLoad } from '../../load.js';
import { attempt, Trouble } from '../../parts/basics.js';
import { PullDown } from '../../parts/pull-down.js';
import { linkTo, place } from '../../routes.js';

const VIEWS = pathTo('/api/admin/me/views');
/** What belongs to a moment, not to a view. */
const PASSING = ['cursor', 'open', 'from', 'tab', 'import'];

/** Filters and order of a collection under names of one's own, at every browser; asked for when somebody looks. */
export function SavedViews({ of: { name: collection } }: { of: Pick<Collection, 'name'> }) {
  const [isAsked, setAsked] = useState(false);
  const { data, error, reload } = useLoad(isAsked ? VIEWS : null);
  const [name, setName] = useState('');
  const { parts, query } = place.value;
  const projectId = parts[1] ?? '';
  const views = data?.items.filter((view) => view.projectId === projectId && view.collection === collection);
  const trimmed = name.trim();
  const save = async (): Promise<string> => {
    const kept = new URLSearchParams([...query].filter(([key]) => !PASSING.includes(key))).toString();
    await call('POST', VIEWS, { body: { projectId, collection, name: trimmed, query: kept } });
    setName('');
    reload();
    return `The view ${trimmed} is saved`;
  };
  const remove = async (view: { id: string; name: string }): Promise<string> => {
    await call('DELETE', below(VIEWS, '/{view}', { view: view.id }));
    reload();
    return `The view ${view.name} is removed`;
  };
  return (
    <PullDown
      label={views?.length ? `Views (${views.length})` : 'Views'}
      onOpen={() => (isAsked ? reload() : setAsked(true))}
    >
      <Trouble error={error} />
      <ul>
        {views?.map((view) => (
          <li key={view.id}>
            <a href={`${linkTo(parts)}?${view.query}`}>{view.name}</a>
            <button
              class="small quiet end"
              aria-label={`Remove the view ${view.name}`}
              onClick={() => void attempt(() => remove(view))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (trimmed !== '') void attempt(save);
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
