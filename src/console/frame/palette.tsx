import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { useModal } from '../parts/modal.js';
import { goTo } from '../routes.js';
import { findPlaces, findUsers, loadCollectionNames, type Finding } from './findings.js';

/** Whether it is shown: Ctrl-K and the button of the header open it. */
export const isFinding = signal(false);

const PAUSE_MS = 150;

/** Finds screens, actions, projects, collections, documents by id and users by address. */
export function Palette() {
  return isFinding.value ? <Open /> : null;
}

function Open() {
  const ref = useModal();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const [collections, setCollections] = useState<readonly string[]>([]);
  const [users, setUsers] = useState<readonly Finding[]>([]);
  const wanted = typed.trim();
  useEffect(() => void loadCollectionNames().then(setCollections, () => undefined), []);
  useEffect(() => {
    setUsers([]);
    const ending = new AbortController();
    const timer = setTimeout(() => void findUsers(wanted, ending.signal).then(setUsers, () => undefined), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [wanted]);
  const found = [...findPlaces(wanted, collections), ...users];
  const chosen = Math.min(at, found.length - 1);
  const go = (finding: Finding | undefined): void => {
    if (!finding) return;
    isFinding.value = false;
    goTo(finding.link);
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((chosen + step + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(found[chosen]);
    }
  };
  return (
    <dialog ref={ref} class="palette" aria-label="Find" onClose={() => (isFinding.value = false)}>
      <label>
        <span class="hidden">Find</span>
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          {...(found.length > 0 && { 'aria-activedescendant': `found-${chosen}` })}
          autocomplete="off"
          placeholder="Screen, collection, id of a document, address of a user"
          value={typed}
          onKeyDown={press}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
          }}
        />
      </label>
      <ul id="found" role="listbox" aria-label="Found">
        {found.map((finding, n) => (
          <li
            key={finding.link}
            id={`found-${n}`}
            role="option"
            aria-selected={n === chosen}
            onClick={() => go(finding)}
          >
            <Icon name={finding.icon} />
            <span>{finding.text}</span>
            <span class="muted">{finding.hint}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="empty">Nothing is called so.</p>}
    </dialog>
  );
}
