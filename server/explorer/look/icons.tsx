/**
 * The icons of the explorer, in the colour of the text beside them. They always repeat something that is also in words.
 */
import type { ComponentChildren } from "preact";

function Icon({ children }: { readonly children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const CopyIcon = () => (
  <Icon>
    <rect x="7" y="7" width="9.5" height="9.5" rx="2" />
    <path d="M13 4.5v-.3A1.7 1.7 0 0 0 11.3 2.500H5.200A1.7 1.7 0 0 0 3.5 4.200v6.100A1.7 1.7 0 0 0 5.2 12h.3" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon>
    <path d="m4 10.5 4 4 8-9" />
  </Icon>
);
export const CrossIcon = () => (
  <Icon>
    <path d="m5 5 10 10M15 5 5 15" />
  </Icon>
);
export const DashIcon = () => (
  <Icon>
    <path d="M5 10h10" />
  </Icon>
);
export const AlarmIcon = () => (
  <Icon>
    <path d="M10 3 2.5 16.500h15L10 3ZM10 8v4M10 14.200v.1" />
  </Icon>
);
export const ShieldIcon = () => (
  <Icon>
    <path d="M10 2.5 4 4.800v4.700c0 4 2.6 6.7 6 8 3.4-1.3 6-4 6-8V4.800L10 2.500Z" />
    <path d="m7.3 9.8 2 2 3.5-4" />
  </Icon>
);
export const SunIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="3.5" />
    <path d="M10 2v1.500M10 16.500V18M2 10h1.500M16.5 10H18M4.3 4.300l1.1 1.100M14.6 14.600l1.1 1.100M4.3 15.700l1.1-1.100M14.6 5.400l1.1-1.1" />
  </Icon>
);
export const MoonIcon = () => (
  <Icon>
    <path d="M16.5 11.800A6.8 6.8 0 0 1 8.2 3.500a6.8 6.8 0 1 0 8.3 8.300Z" />
  </Icon>
);
export const SystemIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="7" />
    <path d="M10 3v14a7 7 0 0 0 0-14Z" fill="currentColor" />
  </Icon>
);
export const DownloadIcon = () => (
  <Icon>
    <path d="M10 3v9.500M6 9l4 4 4-4M3.5 16.500h13" />
  </Icon>
);
export const SearchIcon = () => (
  <Icon>
    <circle cx="9" cy="9" r="5.5" />
    <path d="m13.2 13.2 3.8 3.8" />
  </Icon>
);
export const BeforeIcon = () => (
  <Icon>
    <path d="M12.5 4.5 7 10l5.5 5.5" />
  </Icon>
);
export const AfterIcon = () => (
  <Icon>
    <path d="M7.5 4.5 13 10l-5.5 5.5" />
  </Icon>
);
