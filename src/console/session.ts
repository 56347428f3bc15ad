import { computed, effect, signal } from '@preact/signals';
import { pathTo } from './api-paths.js';
import type { ApiSchemas } from './api-routes.js';
import { call } from './api.js';
import { place } from './routes.js';

/** What the page knows about the signed-in operator. */
type Me = Pick<ApiSchemas['Me'], 'email' | 'role' | 'projects'>;

/** undefined until known; null = not signed in; without an address, as remembered from the last visit. */
export const me = signal<Me | null | undefined>(undefined);
export const projects = signal<ApiSchemas['Project'][]>([]);

/**
 * The operator who was signed in here last, without the address: what a page needs to begin with, while it asks the
 * server whether this is still the case. null = not signed in, as far as this browser knows.
 */
export function recallMe(): Me | null {
  const [role, sees] = (read('me') ?? '').split(' ');
  return role === 'owner' || role === 'viewer' ? { email: '', role, projects: sees === 'all' ? null : [] } : null;
}

/** Stores what the server returned about the signed-in operator. */
export function setMe(found: Me | null): void {
  me.value = found;
  keep('me', found ? `${found.role} ${found.projects === null ? 'all' : 'some'}` : null);
}

/** The user as whom the documents of the place are looked at; null = as they are. */
export const played = computed(() => {
  const { parts, query } = place.value;
  return parts[2] === 'documents' ? query.get('as') : null;
});
export const mayChange = computed(() => me.value?.role === 'owner' && played.value === null);
export const seesAll = computed(() => me.value?.projects === null);

/** The address of the project that the place names. */
export const projectPath = () => pathTo('/api/projects/{projectId}', { projectId: place.value.parts[1] ?? '' });

/** The project that the place names. */
export const project = computed(() => {
  const { parts } = place.value;
  return parts[0] === 'p' ? (projects.value.find(({ id }) => id === parts[1]) ?? null) : null;
});

const last = signal('');
effect(() => {
  if (project.value) last.value = project.value.id;
});

/** The project whose screens the menu leads to: the one of the place, the last one, or the first. */
export const menuProject = computed(
  () => project.value ?? projects.value.find(({ id }) => id === last.value) ?? projects.value[0] ?? null,
);

export async function loadProjects(): Promise<void> {
  projects.value = (await call('GET', pathTo('/api/projects'))).items;
}

/** Problems of the last response, whichever part of the page requested it. */
export const problems = signal<ApiSchemas['ServiceStatus']['problems'] | null>(null);

type Theme = 'auto' | 'light' | 'dark';
export const theme = signal<Theme>((read('theme') as Theme | null) ?? 'auto');
/** Times as the browser's, or UTC as the server's logs have them. */
export const utc = signal(read('utc') === '1');
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  keep('theme', theme.value);
  keep('utc', utc.value ? '1' : '0');
});

function read(name: string): string | null {
  try {
    return localStorage.getItem(`bsvc.${name}`);
  } catch {
    return null;
  }
}

function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`bsvc.${name}`);
    else localStorage.setItem(`bsvc.${name}`, value);
  } catch {
    // A browser that keeps nothing shows the defaults.
  }
}

/** What this browser keeps for a place: columns, the collection seen last. */
export function readSetting<T>(name: string): T | null {
  try {
    return JSON.parse(read(`setting.${name}`) ?? 'null') as T | null;
  } catch {
    return null;
  }
}
export const keepSetting = (name: string, value: unknown): void => keep(`setting.${name}`, JSON.stringify(value));
export const forgetSetting = (name: string): void => keep(`setting.${name}`, null);
