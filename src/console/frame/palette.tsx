import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../api-paths.js';
import { call } from '../api.js';
import { useModal } from '../parts/basics.js';
import { Icon, type IconName } from '../parts/icon.js';
import { goTo, linkTo } from '../routes.js';
import { mayChange, menuProject, projects, seesAll } from '../session.js';
import { linkToScreen, SCREENS } from './screens.js';

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
          placeholder="Screen, collection, id of a document, email of a user"
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
      {found.length === 0 && <p class="empty">No results.</p>}
    </dialog>
  );
}

/** Something that Ctrl-K leads to. */
interface Finding {
  icon: IconName;
  text: string;
  /** What kind of thing it is, or where. */
  hint: string;
  link: string;
}

const ID = /^[0-9a-f]{24}$/i;
const MOST = 12;

/** Screens, actions and projects: known without asking. */
function listPlaces(): Finding[] {
  const project = menuProject.value;
  const screens = SCREENS.filter(({ ofProject, forAll }) => (!ofProject || project) && (!forAll || seesAll.value));
  const actions: readonly (readonly [icon: IconName, text: string, path: string, query: string])[] = [
    ['users', 'New user', 'users', 'new'],
    ['mail', 'Invite a user', 'users', 'invite'],
    ['signin', 'Edit sign-in', 'sign-in', 'edit'],
    ['mail', 'Email provider and sender', 'mail', 'edit'],
    ['project', 'Edit the project', 'settings', 'edit'],
  ];
  return [
    ...screens.map((screen) => ({
      icon: screen.icon,
      text: screen.name,
      hint: screen.ofProject ? project!.name : 'screen',
      link: linkToScreen(screen, project?.id ?? ''),
    })),
    ...(mayChange.value && project
      ? actions.map(([icon, text, path, query]) => ({
          icon,
          text,
          hint: 'action',
          link: linkTo(['p', project.id, path], { [query]: '1' }),
        }))
      : []),
    ...(mayChange.value && seesAll.value
      ? [{ icon: 'plus', text: 'New project', hint: 'action', link: linkTo([], { new: 'project' }) } as const]
      : []),
    ...projects.value.map(({ id, name }) => ({
      icon: 'project' as const,
      text: name,
      hint: 'project',
      link: linkTo(['p', id, 'documents']),
    })),
  ];
}

/** What is found at once: the names that hold all words; a text of 24 hexadecimal digits is an id of a document. */
function findPlaces(typed: string, collections: readonly string[]): Finding[] {
  const project = menuProject.value?.id;
  if (project && ID.test(typed)) {
    return collections.slice(0, MOST).map((name) => ({
      icon: 'documents',
      text: `${name} ${typed}`,
      hint: 'document by id',
      link: linkTo(['p', project, 'documents', name], { open: typed }),
    }));
  }
  const words = typed.toLowerCase().split(/\s+/);
  const ofCollections: Finding[] = project
    ? collections.map((name) => ({
        icon: 'collections',
        text: name,
        hint: 'documents',
        link: linkTo(['p', project, 'documents', name]),
      }))
    : [];
  return [...listPlaces(), ...ofCollections]
    .filter(({ text, hint }) => words.every((word) => `${text} ${hint}`.toLowerCase().includes(word)))
    .slice(0, MOST);
}

/** Names of the collections of the project at hand. */
async function loadCollectionNames(): Promise<string[]> {
  const project = menuProject.value;
  if (!project) return [];
  const { items } = await call('GET', pathTo('/api/projects/{projectId}/collections', { projectId: project.id }));
  return items.map(({ name }) => name);
}

const MOST_USERS = 5;

/** Users whose address begins so; none for what cannot begin one. */
async function findUsers(typed: string, signal: AbortSignal): Promise<Finding[]> {
  const project = menuProject.value;
  if (!project || !/^[^\s]{2,100}$/.test(typed) || ID.test(typed)) return [];
  const { items } = await call('GET', pathTo('/api/projects/{projectId}/users', { projectId: project.id }), {
    query: { email: typed, limit: MOST_USERS },
    signal,
  });
  return items.map(({ _id, email }) => ({
    icon: 'users',
    text: email ?? _id,
    hint: 'user',
    link: linkTo(['p', project.id, 'users'], { open: _id }),
  }));
}
