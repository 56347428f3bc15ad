import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { goTo, linkTo, place } from '../routes.js';
import { menuProject, project, projects, seesAll } from '../session.js';
import { GROUPS, linkToScreen, screenAt } from './screens.js';

/** Screens by group. On a phone it is a sheet that the header opens. */
export function Menu() {
  const { parts } = place.value;
  const current = screenAt(parts);
  const shown = menuProject.value?.id ?? (parts[0] === 'p' ? parts[1] : undefined);
  const sheet = useRef<HTMLElement>(null);
  useEffect(() => {
    if (sheet.current?.matches(':popover-open')) sheet.current.hidePopover();
  }, [place.value]);
  return (
    <nav ref={sheet} id="menu" aria-label="Screens" popover="auto">
      <a class="brand" href="#/">
        bsvc
      </a>
      <ProjectChoice />
      {GROUPS.map(({ name, screens }) => {
        const listed = screens.filter(
          ({ ofProject, forAll }) => (!ofProject || shown !== undefined) && (!forAll || seesAll.value),
        );
        if (listed.length === 0) return null;
        return (
          <section key={name}>
            {name !== '' && <h2>{name}</h2>}
            <ul>
              {listed.map((screen) => (
                <li key={screen.path}>
                  <a
                    href={linkToScreen(screen, shown ?? '')}
                    {...(current === screen && { 'aria-current': 'page' as const })}
                  >
                    <Icon name={screen.icon} />
                    {screen.name}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

function ProjectChoice() {
  const chosen = project.value ?? menuProject.value;
  return (
    <label>
      <span class="hidden">Project</span>
      <select
        value={chosen?.id ?? ''}
        onChange={({ currentTarget: { value } }) => {
          const { parts } = place.value;
          goTo(linkTo(['p', value, parts[0] === 'p' ? (parts[2] ?? 'documents') : 'documents']));
        }}
      >
        {!chosen && <option value="">No project</option>}
        {projects.value.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
