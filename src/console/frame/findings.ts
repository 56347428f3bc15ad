import { call } from '../api.js';
import { pathTo } from '../api-paths.js';
import type { IconName } from '../parts/icon.js';
import { linkTo } from '../routes.js';
import { mayChange, menuProject, projects, seesAll } from '../session.js';
import { linkToScreen, SCREENS } from './screens.js';

/** Something that Ctrl-K leads to. */
export interface Finding {
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
    ['mail', 'Mail provider and sender', 'mail', 'edit'],
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
export function findPlaces(typed: string, collections: readonly string[]): Finding[] {
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
export async function loadCollectionNames(): Promise<string[]> {
  const project = menuProject.value;
  if (!project) return [];
  const { items } = await call('GET', pathTo('/api/projects/{projectId}/collections', { projectId: project.id }));
  return items.map(({ name }) => name);
}

const MOST_USERS = 5;

/** Users whose address begins so; none for what cannot begin one. */
export async function findUsers(typed: string, signal: AbortSignal): Promise<Finding[]> {
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
